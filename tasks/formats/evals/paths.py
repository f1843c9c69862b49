"""What the paths in an eval file lead to, and the names of its tests. No path leaves the repository."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from passgate.tasks.formats.discover import SUITES
from passgate.tasks.formats.evals.node import Complaints, Node

PROJECT_MARK = ".agentv"  # the folder of AgentV's settings, which lies at the top of a project
TEMPLATES_FOLDER = f"{PROJECT_MARK}/templates"
_ENDINGS = re.compile(r"((\A|\.)eval)?(\.yaml|\.yml|\.jsonl|\.json|\.csv)?\Z", re.IGNORECASE | re.ASCII)

_HINTS = {
    re.compile(r"^ref://"): "names of another tool's settings are not looked up; write `file://` and the path",
    re.compile(r"\.([cm]?js|py):\w+$"): "no function gives tests; write what it returns into a JSONL file",
}


@dataclass(frozen=True)
class Ground:
    """The folders that the paths of an eval file are about, both absolute."""

    suites_folder: Path
    repository: Path  # what no path may leave, and what absolute paths are absolute in
    # Every file and folder that was read, and every place before it where it could have been.
    looked_at: set[Path] = field(default_factory=set, compare=False, repr=False)

    def relative(self, path: Path) -> str:
        """Return a path as tasks hold it: relative to the suites folder, with `..` where it lies outside of it."""
        return Path(os.path.relpath(path, self.suites_folder)).as_posix()

    def looked_at_outside(self) -> frozenset[str]:
        """Of the places that were looked at those outside of the suites folder, relative to it."""
        return frozenset(self.relative(path) for path in self.looked_at if not path.is_relative_to(self.suites_folder))


def ground_of(file: Path, suites_folder: Path) -> Ground:
    """Return the ground of an eval file. Its repository is the nearest folder above it with a `.git`. Without one it is
    the outermost of: the suites folder, the working folder if the file lies in it, folders above it with an `.agentv`
    (except the user's home, where AgentV keeps its own settings), and the folder above the file's own.
    """
    folder = file.absolute().parent
    suites = suites_folder.absolute()
    for parent in (folder, *folder.parents):
        if (parent / ".git").exists():
            return Ground(suites, parent)
    marked = [parent for parent in folder.parents if (parent / PROJECT_MARK).is_dir() and parent != Path.home()]
    # Directly below the root of the file system the folder above would be the whole machine.
    above = folder.parent if folder.parent != Path(folder.anchor) else folder
    holding = [candidate for candidate in (suites, Path.cwd(), *marked, above) if folder.is_relative_to(candidate)]
    return Ground(suites, min(holding or [folder], key=lambda candidate: len(candidate.parts)))


def find_path(node: Node, name: str, ground: Ground, complaints: Complaints) -> Path | None:
    """Where a path of a file leads, absolute; `None` if nowhere, and then the complaints say why. A relative path is
    looked for in the file's folder and in the folders above it, an absolute one from the repository on. A path that
    leaves the repository is a problem; a missing file makes the test one that cannot run.
    """
    above, inner = upwards(node.folder, ground.repository), name.lstrip("/")
    try:
        candidates = [Path(os.path.normpath(parent / name)) for parent in above]
        if name.startswith("/"):
            candidates = [folder / inner for folder in (ground.repository, *above)]
        found = first_of(candidates, ground, Path.exists)
        # Links are followed: a link inside of the repository may lead out of it.
        outside = not (found or candidates[0]).resolve().is_relative_to(ground.repository.resolve())
    except (OSError, ValueError, RuntimeError) as error:
        complaints.problems.append(node.problem(f"{name[:100]!r} is not a path: {error}"))
        return None
    if outside:
        complaints.problems.append(node.problem(f"{name!r} leaves the repository"))
        return None
    if found is None:
        hint = next((f": {hint}" for pattern, hint in _HINTS.items() if pattern.search(name)), "")
        complaints.cannot_run.append(node.problem(f"no file {name!r}{hint}"))
    return found


def find_folder(node: Node, name: str, ground: Ground, complaints: Complaints) -> Path | None:
    """Return the same for a folder that something is worked in, out of which nothing is read here."""
    return find_path(node, name, replace(ground, looked_at=set()), complaints)


def first_of(candidates: Iterable[Path], ground: Ground, is_there: Callable[[Path], bool]) -> Path | None:
    """Return the first candidate that is there; `None` where none is. All that were looked at are noted."""
    for candidate in candidates:
        ground.looked_at.add(candidate)
        if is_there(candidate):
            return candidate
    return None


def is_there(path: Path) -> bool:
    """Return whether a file or folder exists; false for a text that is not a valid path, as one that is too long."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def upwards(folder: Path, repository: Path) -> list[Path]:
    """Return a folder and those above it, up to the repository."""
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(repository))]


def full_id(test_id: str, file: Path, ground: Ground, label: str | None = None) -> str:
    """Return the id of a test behind its file: the path in the suites folder without the suite's folder and without
    suffixes. EVAL.yaml goes by the name of its folder.
    """
    return f"{_file_name(file, ground)}{test_id}" + (f"#{label}" if label is not None else "")


@cache  # a file of many tests asks for every one of them
def _file_name(file: Path, ground: Ground) -> str:
    *folders, name = Path(ground.relative(file)).parts
    folders = [part for part in folders if part != ".."]
    inner = folders[1:] if folders and folders[0] in SUITES else folders
    return "".join(f"{part}/" for part in (*inner, _ENDINGS.sub("", name)) if part)
