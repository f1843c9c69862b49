"""Files that are there whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

from passgate.tasks.errors import StorageError


def write_whole(file: Path, text: str) -> None:
    """Write a file over what was there, in a folder that is there. Raises `StorageError`; then nothing has changed."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
