"""What a command gives: on standard output, or in a file."""

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from passgate.tasks.model.verdict import Verdict


def answer(text: Callable[[], str], document: Callable[[], object], *, as_json: bool, quiet: bool) -> None:
    """Print what a command has found: as text, as one JSON document, or not at all. JSON goes before silence."""
    from passgate.flows.cli.terminal import say

    if as_json:
        say(json_text(document()))
    elif not quiet:
        say(text())


def json_text(document: object) -> str:
    """Return a value as JSON, with terminal control characters escaped."""
    import json

    from pydantic_core import to_jsonable_python

    return json.dumps(to_jsonable_python(document, fallback=str), indent=2)


def say_verdict(verdict: "Verdict", text: Callable[[], str], *, as_json: bool, quiet: bool) -> None:
    """Print a verdict: as text, as the document that verdict.json is, or in a line."""
    from passgate.flows.cli.terminal import say
    from passgate.tasks.reports.escape import printable
    from passgate.tasks.reports.messages import LONGEST_MESSAGE

    if as_json:
        say(json_text(verdict.model_dump(mode="json")))
    else:
        say(printable(verdict.headline, LONGEST_MESSAGE) if quiet else text())


def put(content: str, output: Path | None) -> None:
    """Print the content, or write it whole to a file. Raise `UsageError`.

    A pipe, a device or a link that is there is written into, not replaced.
    """
    from passgate.flows.cli.terminal import say
    from passgate.tasks.errors import UsageError

    if output is None:
        say(content)
        return
    try:
        with _opened(output) as stream:
            stream.write(content.encode("utf-8", "replace"))
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror or error}") from error


@contextmanager
def _opened(output: Path) -> Iterator[BinaryIO]:
    if output.is_symlink() or (output.exists() and not output.is_file()):
        with output.open("wb") as stream:
            yield stream
        return
    from passgate.tasks.files.atomic_write import READABLE

    unfinished = output.with_name(f".{output.name}.{secrets.token_hex(8)}")
    mode = stat.S_IMODE(output.stat().st_mode) if output.exists() else READABLE
    try:
        with open(unfinished, "xb", opener=partial(os.open, mode=mode)) as stream:
            yield stream
        unfinished.replace(output)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
