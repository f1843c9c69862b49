"""Folders that are gone when they have been used."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from passgate.tasks.files.removal import remove_tree


@asynccontextmanager
async def new_folder(parent: Path, prefix: str = "") -> AsyncIterator[Path]:
    """A new folder for as long as the context lasts; whatever programs leave in it, its removal raises nothing.

    Raises `OSError` when it cannot be made.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield folder
    finally:
        await asyncio.shield(asyncio.to_thread(remove_tree, folder))
