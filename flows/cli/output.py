"""What a command gives: on standard output, or in a file."""

import sys
from pathlib import Path


def put(content: str | bytes, output: Path | None) -> None:
    """Print the content, or write it whole to a file. Raise `StorageError`.

    A pipe, a device or a link that is there is written into, not replaced.
    """
    from passgate.flows.cli.terminal import say

    if output is not None:
        _write(content, output)
    elif isinstance(content, str):
        say(content)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()


def _write(content: str | bytes, output: Path) -> None:
    from passgate.tasks.errors import StorageError

    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    try:
        with output.open("wb") as file:
            file.write(data)
    except OSError as error:
        raise StorageError(f"cannot write {output}: {error.strerror or error}") from error
