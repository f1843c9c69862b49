"""Files and folders for their owner only."""

import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

PRIVATE_FILE: Final = stat.S_IRUSR | stat.S_IWUSR
_PRIVATE_FOLDER: Final = stat.S_IRWXU


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner only. Raises `OSError`."""
    if not folder.parent.exists():
        make_private_folder(folder.parent)
    folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)


def close_to_others(folder: Path) -> None:
    """Take a folder's permissions from all but its owner, where it is there and ours."""
    with suppress(OSError):
        folder.chmod(_PRIVATE_FOLDER)
