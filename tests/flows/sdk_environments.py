"""SDKs of agents from PyPI, each in a virtual environment of its own that is installed once per list of versions."""

import fcntl
import hashlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from tests.project import REPOSITORY

SDKS = REPOSITORY / "tests" / "sdks"
"""What each SDK needs, and the agents that are made with it."""


def python_with(sdk: str) -> Path:
    """Return the interpreter that has an SDK. Skip the test where it cannot be installed."""
    found = _installed(sdk)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@cache
def _installed(sdk: str) -> Path | str:
    """The interpreter, or why there is none."""
    versions = SDKS / f"{sdk}.txt"
    folder = Path(sys.prefix, "cache", f"{sdk}-{hashlib.sha256(versions.read_bytes()).hexdigest()[:16]}")
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        # Every worker of the test run comes by here.
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if not folder.is_dir():
                _install(versions, folder)
        except subprocess.SubprocessError as error:
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
            return f"pip cannot install {sdk}: {said[-1] if said else error}"
    return folder / "bin" / "python"


def _install(versions: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        made = Path(unfinished, "venv")
        pip = ["-m", "pip", "--python", str(made / "bin" / "python"), "install", "--quiet", "--no-deps"]
        for arguments in (["-m", "venv", "--without-pip", str(made)], [*pip, "--requirement", str(versions)]):
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True, timeout=600)
        made.rename(folder)


if __name__ == "__main__":
    with ThreadPoolExecutor() as threads:
        print(*threads.map(_installed, (file.stem for file in SDKS.glob("*.txt"))), sep="\n")
