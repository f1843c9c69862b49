"""Files that are there whole or not at all."""

import os
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from passgate.tasks.errors import StorageError

PRIVATE_FILE: Final = stat.S_IRUSR | stat.S_IWUSR
READABLE: Final = 0o666  # the mode of files that are for whomever the user's umask lets read them


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner only. Raises `OSError`."""
    if not folder.parent.exists():  # not mkdir(parents=True): it gives the folders above what the umask leaves
        make_private_folder(folder.parent)
    folder.mkdir(mode=stat.S_IRWXU, exist_ok=True)


def close_to_others(folder: Path) -> None:
    """Take a folder's permissions from all but its owner, where it is there and ours."""
    with suppress(OSError):
        folder.chmod(stat.S_IRWXU)


def write_atomically(file: Path, content: str | bytes, *, mode: int = READABLE) -> None:
    """Write a file over what was there, in a folder that is there. Raises `StorageError`; then nothing has changed."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")  # renamed at the end, so in the same file system
    try:
        with open(unfinished, "wb", opener=partial(os.open, mode=mode)) as stream:
            stream.write(content.encode("utf-8") if isinstance(content, str) else content)
        unfinished.replace(file)
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
