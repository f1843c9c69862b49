"""Which files of a folder are looked at, and which suite they belong to."""

from collections.abc import Iterator
from pathlib import Path

from passgate.tasks.model.task import Suite

YAML_SUFFIXES = frozenset({".yaml", ".yml"})

SUITES = {str(suite): suite for suite in Suite}  # by their names


def files_below(folder: Path) -> Iterator[Path]:
    """Every file below a folder, but for those of `_shared`, of hidden folders and of `node_modules`."""
    for entry in folder.iterdir():
        if entry.name.startswith((".", "_")) or entry.name == "node_modules":
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from files_below(entry)
        elif entry.is_file():
            yield entry


def suite_of(file: Path) -> Suite | None:
    """Return the suite whose folder a file lies in, by the innermost folder that has a suite's name."""
    return next((SUITES[part] for part in reversed(file.parts[:-1]) if part in SUITES), None)


def suites_folder_of(path: Path) -> Path:
    """Return the folder that paths in a task are relative to: the one that holds the suite's folder.

    A file or folder outside any suite's folder is its own world.
    """
    absolute = path.absolute()
    for folder in (absolute, *absolute.parents):
        if folder.name in SUITES and not folder.is_file():
            return folder.parent
    return absolute if absolute.is_dir() else absolute.parent


def root_of(file: Path, named: Path) -> Path:
    """Return the folder that paths in a file are relative to, which was found by a path: its own, or that of a folder.

    It is the one that holds the suite's folder; outside of suites the folder that was named, or the file's own.
    """
    if not named.is_dir():
        return suites_folder_of(named)
    return named.absolute() if suite_of(file.absolute()) is None else suites_folder_of(file)
