"""What is found wrong in a task, and the checks that several rules share."""

import difflib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jsonschema.exceptions import SchemaError

from passgate.tasks.formats.document import FETCH_LFS, LFS_POINTER, DocumentPath
from passgate.tasks.model.json_values import schema_validator

Finding = tuple[DocumentPath, str]  # where in the document, and what is wrong there
MAX_TEXT_BYTES = 1024 * 1024


def check_path(path: DocumentPath, name: str, root: Path) -> Iterator[Finding]:
    """Yield what is wrong with a path of a task that must exist inside the suites folder."""
    try:
        target = (root / name).resolve()
        exists = target.exists()
    except (OSError, ValueError, RuntimeError) as error:
        yield path, f"{name[:100]!r} is not a path: {getattr(error, 'strerror', None) or error}"
        return
    if not target.is_relative_to(root.resolve()):
        yield path, f"{name!r} leaves the suites folder"
    elif not exists:
        neighbours = [entry.name for entry in target.parent.iterdir()] if target.parent.is_dir() else []
        close = difflib.get_close_matches(target.name, neighbours, n=1)
        remedy = f"; did you mean {close[0]!r}?" if close else ""
        yield path, f"no file {name!r} in the suites folder{remedy}"


def check_contents(path: DocumentPath, name: str, root: Path, *, is_filled: bool = False) -> Iterator[Finding]:
    """Yield what is wrong with a path of a task that must exist inside the suites folder, with the contents that it has
    in the repository; `is_filled`: it must not be empty.
    """
    problems = list(check_path(path, name, root))
    yield from problems or contents_left_out(path, name, root, is_filled=is_filled)


def contents_left_out(path: DocumentPath, name: str, root: Path, *, is_filled: bool) -> Iterator[Finding]:
    """Yield what is missing of the contents of a path that is here."""
    if missing := left_out(root / name):
        yield path, f"{name!r} {missing}"
    elif is_filled and is_empty(root / name):
        yield path, f"{name!r} is empty"


def check_text(path: DocumentPath, name: str, root: Path) -> Iterator[Finding]:
    """Yield what is wrong with a path of a task that must lead to a text file inside the suites folder."""
    problems = list(check_contents(path, name, root))
    yield from problems
    if not problems:
        try:
            read_text(root / name)
        except ValueError as error:
            yield path, f"{name!r} {error}"


def check_json_schema(path: DocumentPath, schema: dict[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong with a JSON Schema of a task."""
    for inner, message in _schema_findings(json.dumps(schema)):
        yield (*path, *inner), message


# Tools and answers of many tasks have the same schema, and to check one takes a millisecond.
@lru_cache(maxsize=1024)
def _schema_findings(text: str) -> tuple[Finding, ...]:
    try:
        schema = json.loads(text)
        schema_validator(schema).check_schema(schema)
    except SchemaError as error:
        return ((tuple(error.absolute_path), f"not a JSON Schema: {error.message}"),)
    return ()


def is_address(text: str) -> bool:
    """Return whether a text is an address as in https://host/v1, without a user and a password in it."""
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def read_text(file: Path) -> str:
    """Return the text of a file. Raises `ValueError` with what is wrong with it, as in "is not UTF-8 text"."""
    try:
        if not file.is_file():
            raise ValueError("is not a file")
        with file.open("rb") as stream:
            content = stream.read(MAX_TEXT_BYTES + 1)
        if len(content) > MAX_TEXT_BYTES:
            raise ValueError(f"is larger than {MAX_TEXT_BYTES // 1024 // 1024} MiB")
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error


_LONGEST_POINTER: Final = 1024  # Bytes, by the specification of git LFS
_SUBMODULE: Final = re.compile(r"^\s*path\s*=\s*(.+?)\s*$", re.MULTILINE)
_FETCH_SUBMODULE: Final = "fetch it with `git submodule update --init`, in a workflow with `submodules: true`"


def left_out(path: Path) -> str:
    """Return what a file, or anything in a folder, lacks and how to get it; an empty text where nothing is missing."""
    try:
        return _left_out(path, path.stat().st_mtime_ns)
    except OSError:
        return ""


# Many tasks have one sandbox. A folder that is changed meanwhile is looked at again.
@lru_cache(maxsize=1024)
def _left_out(path: Path, _changed: int) -> str:
    if path.is_file():
        return f"is a pointer of git LFS: {FETCH_LFS}" if _is_pointer(path) else ""
    for folder, folders, files in os.walk(path):
        if not folders and not files and Path(folder).resolve() in _submodules(path):
            return f"has no contents in {Path(folder).name}, a submodule of git: {_FETCH_SUBMODULE}"
        pointer = next((name for name in files if _is_pointer(Path(folder, name))), None)
        if pointer is not None:
            return f"has {pointer}, a pointer of git LFS in place of the file: {FETCH_LFS}"
    return ""


def is_empty(path: Path) -> bool:
    """Return whether a file has no bytes, or a folder no file that has some."""
    files = [path] if path.is_file() else [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    return not any(file.stat().st_size for file in files if file.exists())


def _is_pointer(file: Path) -> bool:
    try:
        if not len(LFS_POINTER) < file.lstat().st_size < _LONGEST_POINTER or not file.is_file():
            return False
        with file.open("rb") as stream:
            return stream.read(len(LFS_POINTER)) == LFS_POINTER
    except OSError:
        return False


def _submodules(path: Path) -> Iterator[Path]:
    """Yield the folders of the submodules of the repository that a path lies in."""
    for top in path.resolve().parents:
        with suppress(OSError):
            text = (
                (top / ".gitmodules").read_text(encoding="utf-8", errors="replace") if (top / ".git").exists() else ""
            )
            yield from ((top / name).resolve() for name in _SUBMODULE.findall(text))
