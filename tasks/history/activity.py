"""Who works on a history now: those who must not meet see each other's marks in it.

Everybody first leaves a mark and then looks for the marks of others, so that of two who come at once at least one sees
the other, on any store whose listings show what was written before.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from pydantic import ValidationError

from passgate.tasks.errors import StorageError
from passgate.tasks.history.dataset_folder import DatasetFolder
from passgate.tasks.history.lease import LeaseHolder, is_alive, new_holder

STORING: Final = "storing"
"""What a mark of somebody who stores a run begins with."""
TIDYING: Final = "tidying"
"""What a mark of somebody who prunes begins with."""
_FOLDER: Final = ".activity"
_SECONDS: Final = 3600.0
"""For so long the mark of a process counts that has ended on another machine without removing it."""


@contextmanager
def marked(folder: DatasetFolder, what: str) -> Iterator[str]:
    """Leave a mark while the context lasts, and give its name. Raises `OSError`."""
    name = f"{what}-{secrets.token_hex(4)}.json"
    folder.write(f"{_FOLDER}/{name}", new_holder(_SECONDS).model_dump_json().encode())
    try:
        yield name
    finally:
        with suppress(OSError):  # it expires
            folder.remove(f"{_FOLDER}/{name}")


def others(folder: DatasetFolder, own: str = "") -> Mapping[str, LeaseHolder]:
    """The living marks but one's own, by their names. A mark of a dead process is removed. Raises `OSError`."""
    found: dict[str, LeaseHolder] = {}
    for name in folder.names(_FOLDER):
        content = None if name == own else folder.read(f"{_FOLDER}/{name}")
        if content is None:
            continue
        with suppress(ValidationError):
            holder = LeaseHolder.model_validate_json(content)
            if is_alive(holder):
                found[name] = holder
                continue
        folder.remove(f"{_FOLDER}/{name}")
    return found


def refuse_others(folder: DatasetFolder, own: str, kinds: tuple[str, ...]) -> None:
    """Raise `StorageError` while somebody else does something of these kinds."""
    for name, holder in sorted(others(folder, own).items()):
        if name.startswith(kinds):
            raise StorageError(
                f"the history {folder.location} is in use: {name.rpartition('-')[0]} by {holder.described}: "
                f"try again, or remove {folder.location}/{_FOLDER}/{name} if that process has ended"
            )
