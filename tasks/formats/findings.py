"""What is found wrong in a task, and the checks that several rules share."""

import difflib
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonschema.exceptions import SchemaError

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.left_out import is_empty, left_out
from passgate.tasks.model.json_values import schema_validator

Finding = tuple[DocumentPath, str]  # where in the document, and what is wrong there
MAX_TEXT_BYTES = 1024 * 1024


def check_path(path: DocumentPath, name: str, root: Path) -> Iterator[Finding]:
    """Yield a path of a task must exist inside the suites folder."""
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
    """Yield a path of a task must exist inside the suites folder, with the contents that it has in the repository."""
    problems = list(check_path(path, name, root))
    yield from problems or contents_left_out(path, name, root, is_filled=is_filled)


def contents_left_out(path: DocumentPath, name: str, root: Path, *, is_filled: bool) -> Iterator[Finding]:
    """Yield what a path leads to must be here, and not only its name; `is_filled`: with something in it."""
    if missing := left_out(root / name):
        yield path, f"{name!r} {missing}"
    elif is_filled and is_empty(root / name):
        yield path, f"{name!r} is empty"


def check_text(path: DocumentPath, name: str, root: Path) -> Iterator[Finding]:
    """Yield a path of a task must lead to a text file inside the suites folder."""
    problems = list(check_contents(path, name, root))
    yield from problems
    if not problems:
        try:
            read_text(root / name)
        except ValueError as error:
            yield path, f"{name!r} {error}"


def check_json_schema(path: DocumentPath, schema: dict[str, Any]) -> Iterator[Finding]:
    """Yield a JSON Schema of a task must be one."""
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
    """Whether a text is an address as in https://host/v1, without a user and a password in it."""
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def read_text(file: Path) -> str:
    """Return the text of a file. Raises `ValueError` with what is wrong with it, as in "is not UTF-8 text"."""
    try:
        if not file.is_file():
            raise ValueError("is no file")
        with file.open("rb") as stream:
            content = stream.read(MAX_TEXT_BYTES + 1)
        if len(content) > MAX_TEXT_BYTES:
            raise ValueError(f"is larger than {MAX_TEXT_BYTES // 1024 // 1024} MiB")
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
