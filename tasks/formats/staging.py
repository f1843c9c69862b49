"""New files: written under names of their own beside where they belong, then put there, all or none."""

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Staged:
    """Files that are written and not in their places yet."""

    places: Mapping[Path, Path]
    """Where each belongs, by where it is."""

    def publish(self) -> None:
        """Put every file into its place, over what is there."""
        for written, place in self.places.items():
            written.replace(place)


def staged_name(place: Path, mark: str) -> Path:
    """What a file is called until it is in its place: hidden, in the same folder, with the same suffix."""
    return place.with_name(f".{place.stem}.{mark}{place.suffix}")


@contextlib.contextmanager
def staging(texts: Mapping[Path, str]) -> Iterator[Staged]:
    """Write files beside their places. What is not put there is gone afterwards, and the folders made for it too.

    Raises `OSError`, and `ValueError` for a text that UTF-8 cannot write.
    """
    mark = secrets.token_hex(4)
    places = {staged_name(place, mark): place for place in texts}
    made: list[Path] = []
    try:
        for written, place in places.items():
            made += _make_folders(place.parent)
            written.write_bytes(texts[place].encode("utf-8"))
        yield Staged(places)
    finally:
        for written in places:
            written.unlink(missing_ok=True)
        _remove_empty(made)


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it; gives those that were not there, the outermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()][::-1]
    for each in missing:
        each.mkdir(exist_ok=True)
    return missing


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in reversed(list(folders)):
        if folder.is_dir() and not os.listdir(folder):  # noqa: PTH208 - a folder of any size, and only whether
            folder.rmdir()
