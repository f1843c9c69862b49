"""Lock files against other processes."""

import fcntl
import time
from typing import Final

_PAUSE: Final = 0.05
# A process that was killed keeps its locks until the kernel has removed it, which takes a moment on a busy machine.
SECONDS_TO_WAIT: Final = 5.0


def take_lock(descriptor: int) -> None:
    """Lock an open file. Raise `BlockingIOError` if another process keeps the lock for `SECONDS_TO_WAIT`."""
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return
