"""Trees that agents leave behind."""

import os
from pathlib import Path


def dig(folder: Path, levels: int) -> None:
    """Make a chain of folders in a folder, deeper than any path can say."""
    opened = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("deep", dir_fd=opened)
        inner = os.open("deep", os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = inner
    os.close(opened)
