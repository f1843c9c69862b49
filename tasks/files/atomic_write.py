"""Files that are there whole or not at all."""

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from passgate.tasks.errors import StorageError

READABLE: Final = 0o666
"""The mode of files that are for whomever the user's umask lets read them."""


def write_atomically(file: Path, text: str, *, mode: int = READABLE) -> None:
    """Write a file over what was there, in a folder that is there. Raises `StorageError`; then nothing has changed."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with open(unfinished, "w", encoding="utf-8", opener=partial(os.open, mode=mode)) as stream:
            stream.write(text)
        unfinished.replace(file)
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
