"""The files that eval files are made of, read with their environment variables filled in, and the paths of more."""

import contextlib
import difflib
import glob
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from passgate.tasks.formats.document import DocumentPath, UnreadableFileError, format_path, read_document, read_source
from passgate.tasks.formats.evals.node import Complaints, JsonError, Node, TextPlaces, fill_placeholders, parse_json
from passgate.tasks.formats.folder import PROJECT_MARK, SUITES
from passgate.tasks.formats.project_files import ENV_FILE, EnvFileError, variables_for
from passgate.tasks.formats.schema_check import wrong_type
from passgate.tasks.model.json_values import strictly_equal

PLAIN = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")  # `${{ NAME }}`
FILE_SCHEME = "file://"
MAX_LINES_BYTES = 64 * 1024 * 1024  # of a file with one value a line (JSONL, CSV)
MAX_MATCHES = 20_000
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")
_MAGIC = frozenset("*?[")
is_file = os.path.isfile  # false for a text that is not a valid path, where `Path.is_file` may raise
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
        """Return those of the places that were looked at outside of the suites folder, relative to it."""
        return frozenset(self.relative(path) for path in self.looked_at if not path.is_relative_to(self.suites_folder))

    def upwards(self, folder: Path) -> list[Path]:
        """Return a folder and those above it, up to the repository."""
        return [folder, *(parent for parent in folder.parents if parent.is_relative_to(self.repository))]

    def first_existing(self, candidates: Iterable[Path], is_there: Callable[[Path], bool]) -> Path | None:
        """Return the first candidate that is there; `None` where none is. All that were looked at are noted."""
        for candidate in candidates:
            self.looked_at.add(candidate)
            if is_there(candidate):
                return candidate
        return None


def find_ground(file: Path, suites_folder: Path) -> Ground:
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


class Reporter:
    """What notes complaints about values."""

    complaints: Complaints

    def refuse(self, node: Node, message: str, *, at_key: bool = False) -> None:
        """Add a problem: something is wrong with the file."""
        self.complaints.problems.append(node.problem(message, at_key=at_key))

    def refuses_type(self, node: Node, *types: type, context: str = "") -> bool:
        """Return whether a value is of none of the types, and add a problem if so."""
        message = wrong_type(node.value, *types)
        if message is not None:
            self.refuse(node, f"{context}{message}")
        return message is not None

    def agree(self, said: Sequence[Node]) -> Node | None:
        """Return the first of several values, each of which is a problem where it differs from the first."""
        for other in said[1:]:
            if not strictly_equal(said[0].value, other.value):
                self.refuse(
                    other, f"says something else than {format_path(said[0].path)}; keep one of them", at_key=True
                )
        return said[0] if said else None

    def cannot_run(self, node: Node, message: str, *, at_key: bool = False) -> None:
        """Note that the test cannot run: it asks for something that is missing."""
        self.complaints.cannot_run.append(node.problem(message, at_key=at_key))

    def warn(self, node: Node, message: str, *, at_key: bool = False) -> None:
        self.complaints.warnings.append(node.problem(message, at_key=at_key))


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


def interpolate(
    value: Any, variables: Mapping[str, str], placeholder: re.Pattern[str] = PLAIN
) -> tuple[Any, tuple[tuple[DocumentPath, str], ...]]:
    """Return a value with the environment variables in its texts filled in, and the missing ones, which become empty,
    with their places. A text that is one placeholder becomes true, false or a number if the variable is one.
    """
    missing: list[tuple[DocumentPath, str]] = []

    def variable_name(match: re.Match[str]) -> str:
        return next(group for group in match.groups() if group)

    def filled(text: str, path: DocumentPath) -> Any:
        names = map(variable_name, placeholder.finditer(text))
        missing.extend((path, name) for name in names if name not in variables)
        whole = placeholder.fullmatch(text.strip())
        if not whole:
            return placeholder.sub(lambda match: variables.get(variable_name(match), ""), text)
        said = variables.get(variable_name(whole), "")
        if said in {"true", "false"}:
            return said == "true"
        number = _NUMBER.fullmatch(said)
        if number is None:
            return said
        return float(said) if number[2] else int(said)

    return fill_placeholders(value, filled), tuple(dict.fromkeys(missing))


@dataclass(frozen=True)
class Documents(Reporter):
    """Reads files for one eval file; every problem with them goes to the complaints, once."""

    ground: Ground
    complaints: Complaints
    process: Mapping[str, str]  # the environment of the process
    shown: Callable[[Path], str]  # a file's name as users know it
    placeholder: re.Pattern[str] = PLAIN
    own: Mapping[str, str] = field(default_factory=dict)  # what the eval file sets itself, before all else
    environments: dict[Path, dict[str, str]] = field(default_factory=dict)
    # A file that is asked for again is what was read, so its problems are reported once.
    known: dict[tuple[object, ...], Any] = field(default_factory=dict)
    opened: list[Path] = field(default_factory=list)  # every file that tests were taken from, as often as that was

    def read(self, file: Path) -> Node | None:
        """Return the whole document of a YAML or JSON file; `None` when it cannot be read."""
        # Suites with other templates or another `env` share `known`, and read the same file differently.
        key = (file, self.placeholder.pattern, *sorted(self.own.items()))
        if key not in self.known:
            content = self.content(file)
            self.known[key] = self.interpolated(content) if content else None
        node: Node | None = self.known[key]
        return node

    def text(self, file: Path, max_bytes: int = MAX_LINES_BYTES) -> str | None:
        """Return the text of a file; `None` when it cannot be read."""
        self.ground.looked_at.add(file)
        try:
            return read_source(file, max_bytes).removeprefix("\ufeff")
        except UnreadableFileError as error:
            self.complaints.problems.append(error.problem(self.shown(file)))
        return None

    def interpolated(self, node: Node) -> Node:
        """Return a value with its environment variables filled in; a warning for each that is missing."""
        value, missing = interpolate(node.value, self.variables(node.folder), self.placeholder)
        for path, name in missing:
            message = f"the environment variable {name!r} is not set, so it is empty here"
            self.complaints.warnings.append(node.places.problem((*node.path, *path), message))
        return node.with_value(value)

    def variables(self, folder: Path) -> dict[str, str]:
        """Return the environment variables for files of a folder."""
        if folder not in self.environments:
            self.ground.looked_at.update(parent / ENV_FILE for parent in self.ground.upwards(folder))
            try:
                known = variables_for(folder, self.ground.repository, self.process)
            except EnvFileError as error:
                known = dict(self.process)
                self.refuse_file(error.file, str(error))
            self.environments[folder] = {**known, **self.own}
        return self.environments[folder]

    def find_path(self, node: Node, name: str, *, is_read: bool = True) -> Path | None:
        """Return where a path of a file leads, absolute; `None` if nowhere, and then the complaints say why. A relative
        path is looked for in the file's folder and in the folders above it, an absolute one from the repository on. A
        path that leaves the repository is a problem; a missing file makes the test one that cannot run.

        `is_read` is false of a folder that something works in, out of which nothing is read here.
        """
        ground = self.ground if is_read else replace(self.ground, looked_at=set())
        above, inner = ground.upwards(node.folder), name.lstrip("/")
        try:
            candidates = [Path(os.path.normpath(parent / name)) for parent in above]
            if name.startswith("/"):
                candidates = [folder / inner for folder in (ground.repository, *above)]
            found = ground.first_existing(candidates, Path.exists)
            # Links are followed: a link inside of the repository may lead out of it.
            outside = not (found or candidates[0]).resolve().is_relative_to(ground.repository.resolve())
        except (OSError, ValueError, RuntimeError) as error:
            self.refuse(node, f"{name[:100]!r} is not a path: {error}")
            return None
        if outside:
            self.refuse(node, f"{name!r} leaves the repository")
            return None
        if found is None:
            hint = next((f": {hint}" for pattern, hint in _HINTS.items() if pattern.search(name)), "")
            self.cannot_run(node, f"no file {name!r}{hint}")
        return found

    def refuse_file(self, file: Path, message: str, line: int = 1) -> None:
        """Note that something is wrong with a whole file, or from a line on."""
        self.complaints.problems.append(TextPlaces(self.shown(file), line=line).problem((), message))

    def content(self, file: Path) -> Node | None:
        """Return the document as it is written; `None` when it cannot be read."""
        self.ground.looked_at.add(file)
        if not file.is_file():
            self.refuse_file(file, "this is not a file")
            return None
        if file.suffix.lower() != ".json":
            document = read_document(file, self.shown(file))
            self.complaints.problems.extend(document.problems)
            return None if document.problems else Node(document.data, document, file.parent)
        text = self.text(file)
        if text is None:
            return None
        places = TextPlaces(self.shown(file), text)
        try:
            return Node(parse_json(text), places, file.parent)
        except JsonError as error:
            self.complaints.problems.append(places.problem_at(error.offset, str(error)))
        return None


def find_files(node: Node, documents: Documents) -> tuple[Path, ...]:
    """Return the files and folders that a text names: those that match its pattern, by name, or the one at its path.
    None at all is a problem, because tests would be missing.
    """
    name = node.value.strip().removeprefix(FILE_SCHEME)
    if not name:
        documents.refuse(node, "an empty path")
        return ()
    # A file may have a bracket in its name.
    if not _MAGIC.isdisjoint(name) and not os.path.exists(node.folder / name):  # noqa: PTH110 - the text may be no path
        return _matching(node, name, documents)
    found = Complaints()
    path = replace(documents, complaints=found).find_path(node, name)
    documents.complaints.problems.extend(found.problems)
    for problem in found.cannot_run:
        file, neighbours = node.folder / name, list[str]()
        with contextlib.suppress(OSError, ValueError):
            neighbours = [entry.name for entry in file.parent.iterdir()]
        close = difflib.get_close_matches(file.name, neighbours, n=1, cutoff=0.75)
        remedy = f"; did you mean {close[0]!r}?" if close else ""
        documents.refuse(node, problem.message + remedy)
    return () if path is None else (path,)


def _matching(node: Node, pattern: str, documents: Documents) -> tuple[Path, ...]:
    base = documents.ground.repository if pattern.startswith("/") else node.folder
    repository, inner = documents.ground.repository.resolve(), pattern.lstrip("/")
    # The innermost folder that all files of the pattern lie in: a new file in there may match too.
    plain = itertools.takewhile(_MAGIC.isdisjoint, Path(inner).parts[:-1])
    documents.ground.looked_at.add(Path(os.path.normpath(base.joinpath(*plain))))
    try:
        found = sorted(_files(base, inner))
        outside = any(not path.resolve().is_relative_to(repository) for path in found)
    except (OSError, ValueError, RuntimeError) as error:
        documents.refuse(node, f"{pattern[:100]!r} is not a pattern: {error}")
        return ()
    if outside:
        documents.refuse(node, f"{pattern!r} leaves the repository")
        return ()
    if not found:
        documents.refuse(node, f"no file matches {pattern!r}")
    if len(found) > MAX_MATCHES:
        documents.refuse(node, f"more than {MAX_MATCHES} files match {pattern!r}")
        return ()
    documents.ground.looked_at.update(found)
    return tuple(found)


def _files(base: Path, pattern: str) -> Iterator[Path]:
    # Not Path.glob, which matches hidden files too: these match only where the pattern says their dot.
    for count, name in enumerate(glob.iglob(pattern, root_dir=base, recursive=True)):  # noqa: PTH207
        path = Path(os.path.normpath(base / name))
        if path.is_file() and "node_modules" not in path.parts:
            yield path
        if count > MAX_MATCHES * 10:  # folders and what lies in node_modules match too, and cost time
            return
