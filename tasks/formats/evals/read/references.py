"""Paths and patterns in eval files that stand for files of tests."""

import difflib
import glob
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.paths import find_path
from passgate.tasks.formats.evals.read.documents import Documents

FILE_SCHEME = "file://"
MAX_MATCHES = 20_000
_MAGIC = frozenset("*?[")


def files_of(node: Node, documents: Documents) -> tuple[Path, ...]:
    """The files and folders that a text stands for: those of a pattern in order of their names, or the one of a path.

    Where it stands for none that is a problem, for tests would be missing.
    """
    name = node.value.strip().removeprefix(FILE_SCHEME)
    if not name:
        documents.refuse(node.problem("an empty path"))
        return ()
    if not is_pattern(name) or (node.folder / name).exists():
        return _single(node, name, documents)
    return _matching(node, name, documents)


def is_pattern(name: str) -> bool:
    """Whether a text stands for all files that match it."""
    return not _MAGIC.isdisjoint(name)


def _single(node: Node, name: str, documents: Documents) -> tuple[Path, ...]:
    found = Complaints()
    path = find_path(node, name, documents.ground, found)
    documents.complaints.problems.extend(found.problems)
    for problem in found.cannot_run:
        documents.refuse(node.problem(problem.message + _nearest(node.folder, name)))
    return () if path is None else (Path(path),)


def _nearest(folder: Path, name: str) -> str:
    parent = (folder / name).parent
    try:
        neighbours = [entry.name for entry in parent.iterdir()]
    except (OSError, ValueError):
        return ""
    close = difflib.get_close_matches(Path(name).name, neighbours, n=1, cutoff=0.75)
    return f"; did you mean {close[0]!r}?" if close else ""


def _matching(node: Node, pattern: str, documents: Documents) -> tuple[Path, ...]:
    base = documents.ground.repository if pattern.startswith("/") else node.folder
    repository = documents.ground.repository.resolve()
    documents.ground.looked_at.add(_folder_of(base, pattern.lstrip("/")))
    try:
        found = sorted(_files(base, pattern.lstrip("/")))
        outside = any(not path.resolve().is_relative_to(repository) for path in found)
    except (OSError, ValueError, RuntimeError) as error:
        documents.refuse(node.problem(f"{pattern[:100]!r} is not a pattern: {error}"))
        return ()
    if outside:
        documents.refuse(node.problem(f"{pattern!r} leaves the repository"))
        return ()
    if not found:
        documents.refuse(node.problem(f"no file matches {pattern!r}"))
    if len(found) > MAX_MATCHES:
        documents.refuse(node.problem(f"more than {MAX_MATCHES} files match {pattern!r}"))
        return ()
    documents.ground.looked_at.update(found)
    return tuple(found)


def _folder_of(base: Path, pattern: str) -> Path:
    """The innermost folder that all files of a pattern lie in."""
    plain = itertools.takewhile(lambda part: not is_pattern(part), Path(pattern).parts[:-1])
    return Path(os.path.normpath(base.joinpath(*plain)))


def _files(base: Path, pattern: str) -> Iterator[Path]:
    """At most one more than is allowed. Hidden files match only where the pattern says their dot."""
    for count, name in enumerate(glob.iglob(pattern, root_dir=base, recursive=True)):  # noqa: PTH207
        path = Path(os.path.normpath(base / name))
        if path.is_file() and "node_modules" not in path.parts:
            yield path
        if count > MAX_MATCHES * 10:
            return
