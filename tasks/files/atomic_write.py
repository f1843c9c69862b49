"""Write files completely or not at all, and lock them against other processes."""

import fcntl
import os
import stat
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from passgate.tasks.errors import StorageError

PRIVATE_FILE: Final = stat.S_IRUSR | stat.S_IWUSR
READABLE: Final = 0o666  # the mode of files for everybody whom the user's umask lets read them
# A process that was killed keeps its locks until the kernel has removed it, which takes a moment on a busy machine.
SECONDS_TO_WAIT: Final = 5.0
_PAUSE: Final = 0.05


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner only. Raise `OSError`."""
    if not folder.parent.exists():  # not mkdir(parents=True): it gives the folders above what the umask leaves
        make_private_folder(folder.parent)
    folder.mkdir(mode=stat.S_IRWXU, exist_ok=True)


def close_to_others(folder: Path) -> None:
    """Take a folder's permissions from all but its owner, if it exists and is ours."""
    with suppress(OSError):
        folder.chmod(stat.S_IRWXU)


def write_atomically(file: Path, content: str | bytes, *, mode: int = READABLE) -> None:
    """Write a file over an existing one, in a folder that exists. Raise `StorageError`; then nothing has changed."""
    # It is renamed at the end, so it is in the same file system.
    unfinished = file.with_name(f".{file.name}.{os.urandom(8).hex()}")
    try:
        with open(unfinished, "xb", opener=partial(os.open, mode=mode)) as stream:
            stream.write(content.encode("utf-8") if isinstance(content, str) else content)
        unfinished.replace(file)
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def take_lock(descriptor: int) -> None:
    """Lock an open file. Raise `BlockingIOError` if another process keeps the lock for `SECONDS_TO_WAIT`."""
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE)
