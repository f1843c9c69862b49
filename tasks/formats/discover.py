"""Which files of a folder are tasks, and which suite they belong to."""

from collections.abc import Iterator
from pathlib import Path

from passgate.tasks.model.task import Suite

TASK_SUFFIXES = frozenset({".yaml", ".yml"})
SHARED_FOLDER = "_shared"

_SUITES = {str(suite): suite for suite in Suite}


def task_files(folder: Path) -> list[Path]:
    """Every YAML file below a folder, in order, without `_shared` and hidden folders."""
    return sorted(file for file in files_below(folder) if file.suffix in TASK_SUFFIXES)


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
    """The suite whose folder a file lies in, by the innermost folder that has a suite's name."""
    return next((_SUITES[part] for part in reversed(file.parts[:-1]) if part in _SUITES), None)


def suites_folder_of(path: Path) -> Path:
    """The folder that paths in a task are relative to: the one that holds the suite's folder.

    A file or folder outside any suite's folder is its own world.
    """
    absolute = path.absolute()
    for folder in (absolute, *absolute.parents):
        if folder.name in _SUITES and not folder.is_file():
            return folder.parent
    return absolute if absolute.is_dir() else absolute.parent
