"""Environment variables in eval files: `${{ NAME }}`, and where the values come from."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from passgate.tasks.formats.document import DocumentPath

PLAIN = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
"""`${{ NAME }}`."""
WITH_TEMPLATES = re.compile(PLAIN.pattern + r"|(?<!\$)\{\{-?\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*-?\}\}")
"""`${{ NAME }}` and `{{ env.NAME }}`, for files whose texts are templates."""
ENV_FILE = ".env"
MAX_ENV_BYTES = 1024 * 1024
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")


class EnvFileError(ValueError):
    """A `.env` file that cannot be read, and why."""

    def __init__(self, file: Path, message: str) -> None:
        self.file = file
        super().__init__(message)


Missing = tuple[DocumentPath, str]
"""Where a variable is asked for that is not set, and its name."""


def variables_for(folder: Path, repository: Path, process: Mapping[str, str]) -> dict[str, str]:
    """The variables for files of a folder: those of the process, then of the `.env` files from the folder up to the
    repository, the nearest first.

    Raises `EnvFileError`.
    """
    folders = [parent for parent in (folder, *folder.parents) if parent.is_relative_to(repository)]
    variables: dict[str, str] = {}
    for parent in reversed(folders):
        variables |= read_env_file(parent / ENV_FILE)
    return variables | dict(process)


def read_env_file(file: Path) -> dict[str, str]:
    """The variables of one `.env` file; none without it. Raises `EnvFileError`."""
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
    return {name: value for name, value in values.items() if value is not None}


def interpolate(
    value: Any, variables: Mapping[str, str], placeholder: re.Pattern[str] = PLAIN
) -> tuple[Any, tuple[Missing, ...]]:
    """A value with the environment variables in its texts filled in, and what is missing: that becomes empty.

    A text that is one placeholder becomes true, false or a number where the variable says so.
    """
    missing: list[Missing] = []

    def filled(inner: Any, path: DocumentPath) -> Any:
        if isinstance(inner, str):
            if "{{" not in inner:
                return inner
            missing.extend((path, name) for name in _names(inner, placeholder) if name not in variables)
            return _filled(inner, variables, placeholder)
        if isinstance(inner, dict):
            return {key: filled(item, (*path, key)) for key, item in inner.items()}
        if isinstance(inner, list):
            return [filled(item, (*path, index)) for index, item in enumerate(inner)]
        return inner

    return filled(value, ()), tuple(dict.fromkeys(missing))


def _names(text: str, placeholder: re.Pattern[str]) -> Iterator[str]:
    return (_name(match) for match in placeholder.finditer(text))


def _name(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group)


def _filled(text: str, variables: Mapping[str, str], placeholder: re.Pattern[str]) -> Any:
    whole = placeholder.fullmatch(text.strip())
    if whole:
        return _typed(variables.get(_name(whole), ""))
    return placeholder.sub(lambda match: variables.get(_name(match), ""), text)


def _typed(text: str) -> Any:
    if text in {"true", "false"}:
        return text == "true"
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    return float(text) if number[2] else int(text)
