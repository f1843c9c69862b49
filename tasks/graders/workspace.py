"""What an agent left behind: it may have left anything, so nothing is opened before it is looked at."""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.sandbox import ProcessResult, Sandbox

LIMIT = 10_000_000  # Bytes: no file larger than this is read
NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127
# What `sh -c` itself says; a script that it starts says its own name first.
_MISSING_PROGRAM: Final = re.compile(r"^sh: (?:(?:line )?[0-9]+: )?([^\s/:]+): (?:command )?not found$", re.MULTILINE)


class UnusableFileError(Exception):
    """A file that is missing or must not be read; the text says which and why, for a failed check."""


def resolve(workspace: Path, relative: str) -> Path:
    """Return where a path of the workspace leads when its links are followed. Raises `UnusableFileError` when it leads
    out of the workspace.
    """
    root = os.path.realpath(workspace)
    path = Path(os.path.realpath(os.path.join(root, relative)))  # noqa: PTH118 - realpath never raises on loops
    if not path.is_relative_to(root):
        raise UnusableFileError(f"{relative} is outside the workspace")
    return path


def is_present(workspace: Path, relative: str) -> bool:
    """Return whether anything at all has this name, a dangling link included. Raises as `resolve` does."""
    name = Path(relative)
    return os.path.lexists(resolve(workspace, str(name.parent)) / name.name)


def regular_file(workspace: Path, relative: str) -> Path:
    """Return the path of a regular file of the workspace. Raises `UnusableFileError` when it leads out, is not there,
    or is a folder, a FIFO, a socket or a device.
    """
    path = resolve(workspace, relative)
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise UnusableFileError(f"{relative} does not exist") from None
    except OSError as error:
        raise UnusableFileError(f"{relative} cannot be accessed: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise UnusableFileError(f"{relative} is not a regular file")
    return path


def read_bytes(workspace: Path, relative: str) -> bytes:
    """Return the content of a regular file of the workspace, at most `LIMIT` bytes. Raises `UnusableFileError` as
    `regular_file` does, and when the file is too large or cannot be read.
    """
    path = regular_file(workspace, relative)
    try:
        # Should something swap the file at the last moment: neither follow a link nor wait for a FIFO.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(LIMIT + 1)
    except OSError as error:
        raise UnusableFileError(f"{relative} cannot be read: {error.strerror}") from error
    if len(content) > LIMIT:
        raise UnusableFileError(f"{relative} is larger than {LIMIT // 1_000_000} MB")
    return content


def read_text(workspace: Path, relative: str) -> str:
    """Return the content of a UTF-8 text file of the workspace, line ends as they are. Raises as `read_bytes` does."""
    try:
        return read_bytes(workspace, relative).decode("utf-8")
    except UnicodeDecodeError:
        raise UnusableFileError(f"{relative} is not UTF-8 text") from None


async def run_shell(
    sandbox: Sandbox, command: str, *, seconds: float, environment: Mapping[str, str] | None = None
) -> ProcessResult:
    """Run a command with `sh -c` in the workspace and return how it ended.

    Raises `MeasurementError` when the command names a program that this machine does not have. A program
    named by a path is the agent's matter: it may have been asked to write it.
    """
    result = await sandbox.run(["sh", "-c", command], seconds=seconds, environment=environment)
    missing = _MISSING_PROGRAM.search(result.stderr) if result.exit_code == NOT_FOUND else None
    if missing:
        # The message may come from the agent's code, which would like an error better than a fail.
        look = await sandbox.run(["sh", "-c", 'command -v "$1"', "sh", missing[1]], seconds=10)
        if look.exit_code != 0:
            raise MeasurementError(f"`{command}` cannot be run: {missing[1]} is not installed")
    return result
