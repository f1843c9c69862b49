"""Read the variables of `.env` files."""

from collections.abc import Mapping
from pathlib import Path

from dotenv import dotenv_values

ENV_FILE = ".env"
MAX_ENV_BYTES = 1024 * 1024


class EnvFileError(ValueError):
    """A `.env` file that cannot be read, and why."""

    def __init__(self, file: Path, message: str) -> None:
        super().__init__(message)
        self.file = file


def variables_for(folder: Path, repository: Path, process: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for files of a folder: those of the process, then of the `.env` files from the folder up
    to the repository, the nearest first. Raise `EnvFileError`.
    """
    variables: dict[str, str] = {}
    for parent in reversed((folder, *folder.parents)):
        variables |= read_env_file(parent / ENV_FILE) if parent.is_relative_to(repository) else {}
    return variables | dict(process)


def read_env_file(file: Path) -> dict[str, str]:
    """Return the variables of one `.env` file, if it exists. Raise `EnvFileError`."""
    try:
        if not file.is_file():
            return {}
        if file.stat().st_size > MAX_ENV_BYTES:
            raise EnvFileError(file, f"cannot be read: the file is larger than {MAX_ENV_BYTES // 1024} KiB")
        values = dotenv_values(file, interpolate=False, encoding="utf-8-sig")
    except OSError as error:
        raise EnvFileError(file, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise EnvFileError(file, "cannot be read: this is not UTF-8 text") from error
    # A line without `=` names a variable and sets nothing.
    return {name: value for name, value in values.items() if value is not None}
