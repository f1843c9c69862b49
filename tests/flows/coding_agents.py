"""Coding agents from npm, installed once per lock file."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.project import REPOSITORY

PACKAGES = REPOSITORY / "tests" / "npm"
PROGRAMS = {"claude": "@anthropic-ai/claude-code-linux-x64/claude", "opencode": "opencode-linux-x64/bin/opencode"}
"""Programs of packages whose install scripts are not run, in node_modules."""


def installed_commands() -> Path:
    """The folder of the installed clients' commands; installed once per lock file."""
    digest = hashlib.sha256((PACKAGES / "package-lock.json").read_bytes()).hexdigest()[:16]
    installed = Path(sys.prefix, "cache", f"npm-{digest}")
    installed.parent.mkdir(exist_ok=True)
    with Path(installed.parent, "npm.lock").open("w") as lock:
        # Every worker of the test run comes by here.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.is_dir():
            _install(installed)
    return installed / "node_modules" / ".bin"


def _install(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        packages = shutil.copytree(PACKAGES, Path(unfinished, "packages"))
        npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(npm, cwd=packages, check=True, capture_output=True, timeout=600)
        for name, program in PROGRAMS.items():
            link = packages / "node_modules" / ".bin" / name
            link.unlink(missing_ok=True)
            link.symlink_to(Path("..", program))
        packages.rename(folder)


if __name__ == "__main__":
    installed_commands()
