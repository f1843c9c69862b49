"""A folder with suites and a gates file, and the `passgate` command in it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.warm import popen

REPOSITORY = Path(__file__).parent.parent
_CLEAN = ("GITHUB_", "CI_", "BUILDKITE", "PASSGATE_", "PREFECT_")


def clean_environment() -> dict[str, str]:
    """This environment without what a CI system or a developer's shell may have put into it."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_CLEAN) and name not in {"CI", "BRANCH_NAME", "COLUMNS", "NO_COLOR"}
    }


@dataclass
class Project:
    """A folder with suites and a gates file, and the `passgate` command in it."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "passgate", *arguments]

    def full_environment(self, **extra: str) -> dict[str, str]:
        return {**clean_environment(), "COLUMNS": "120", **self.environment, **extra}

    def passgate(self, *arguments: str, timeout: float = 300, **extra: str) -> subprocess.CompletedProcess[str]:
        return self.run(self.command(*arguments), timeout=timeout, **extra)

    def run(
        self, command: Sequence[str], *, timeout: float = 300, stdout: int = subprocess.PIPE, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        """Run any command in the folder, with more of the environment."""
        with self.started(command, stdout=stdout, env=self.full_environment(**extra)) as process:
            output, messages = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(command, process.returncode, output, messages)

    @contextmanager
    def started(self, command: Sequence[str], **options: Any) -> Iterator["subprocess.Popen[str]"]:
        """Start any command in the folder, and kill it at the end of the context.

        `options` are those of `subprocess.Popen`.
        """
        plain = {"cwd": self.path, "env": self.full_environment(), "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        options = {**plain, "text": True, **options}
        self.wait_for_next_second(command)
        with popen(command, **options) as process:
            try:
                yield process
            finally:
                process.kill()

    def wait_for_next_second(self, command: Sequence[str]) -> None:
        """Have a run begin in another second than those before it: runs of one second have no order."""
        second = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        if "run" in command and any(self.path.glob(f".passgate/runs/{second}-*")):
            time.sleep(1 - time.time() % 1)

    def git(self, *arguments: str, **environment: str) -> str:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        result = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return result.stdout.strip()

    def run_folders(self) -> list[Path]:
        return sorted((self.path / ".passgate" / "runs").iterdir())
