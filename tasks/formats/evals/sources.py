"""Where the parts of a test are read from, and where complaints go."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.words import Parts
from passgate.tasks.formats.findings import left_out, read_text
from passgate.tasks.formats.folder import PROJECT_MARK, SUITES
from passgate.tasks.formats.schema_check import wrong_type

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


Value = TypeVar("Value")


@dataclass(frozen=True)
class Sources:
    """The folders that paths are about, the files that were read before, and where complaints go."""

    ground: Ground
    complaints: Complaints
    # Reads a YAML file and fills in its variables; complains and gives `None` when it cannot.
    read_file: Callable[[Path], Node | None]
    texts: dict[Path, str | ValueError] = field(default_factory=dict)
    templates: tuple[Path, ...] = ()  # the templates of assertions that are being read, the outermost first
    # Whether the plain texts in a list of graders go to one judge; else they are the items of a rubric.
    one_judge: bool = False

    def refuse(self, node: Node, message: str, *, at_key: bool = False) -> None:
        """Add a problem: something is wrong with the file."""
        self.complaints.problems.append(node.problem(message, at_key=at_key))

    def refuses_type(self, node: Node, *types: type, context: str = "") -> bool:
        """Return whether a value is of none of the types, and add a problem if so."""
        message = wrong_type(node.value, *types)
        if message is not None:
            self.refuse(node, f"{context}{message}")
        return message is not None

    def cannot_run(self, node: Node, message: str, *, at_key: bool = False) -> None:
        """Note that the test cannot run: it asks for something that is missing."""
        self.complaints.cannot_run.append(node.problem(message, at_key=at_key))

    def cannot_have(self, asked: Parts | Node, messages: Mapping[str, str]) -> None:
        """Do the same for each of several keys that the file has."""
        for key, message in messages.items():
            if (part := asked.get(key)) is not None:
                self.cannot_run(part, message, at_key=True)

    def warn(self, node: Node, message: str, *, at_key: bool = False) -> None:
        self.complaints.warnings.append(node.problem(message, at_key=at_key))

    def path(self, node: Node, name: str) -> Path | None:
        """Where a path leads; complains and gives `None` when it leads nowhere."""
        return self._whole(node, name, find_path(node, name, self.ground, self.complaints))

    def folder(self, node: Node, name: str) -> str:
        """Return a working folder as tasks hold it. A path that leads nowhere stays as the file writes it."""
        path = self._whole(node, name, find_folder(node, name, self.ground, self.complaints))
        return name if path is None else self.ground.relative(path)

    def _whole(self, node: Node, name: str, path: Path | None) -> Path | None:
        """Return the same path; notes that the test cannot run where the checkout lacks contents of it."""
        if path is not None and (missing := left_out(path)):
            self.cannot_run(node, f"{name!r} {missing}")
        return path

    def text(self, node: Node, name: str, called: str = "") -> tuple[str, str | None]:
        """Return a path as tasks hold it, and what the file holds; without text where it cannot be read. `called` is
        how complaints name the file, where it is not by the path.
        """
        path = self.path(node, name)
        if path is None:
            return name, None
        if path not in self.texts:
            try:
                self.texts[path] = read_text(path)
            except ValueError as error:
                self.texts[path] = error  # every test that names the file is told
        content = self.texts[path]
        if isinstance(content, ValueError):
            self.cannot_run(node, f"{called or name!r} {content}")
            return self.ground.relative(path), None
        return self.ground.relative(path), content


def add_complaints(complaints: Complaints, others: Complaints) -> None:
    """Append further complaints."""
    complaints.problems.extend(others.problems)
    complaints.warnings.extend(others.warnings)
    complaints.cannot_run.extend(others.cannot_run)


def present(values: Iterable[Value | None]) -> tuple[Value, ...]:
    """Return the values that are not `None`."""
    return tuple(value for value in values if value is not None)


def is_file(path: Path) -> bool:
    """Whether a file exists; false for a text that is no valid path."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
