"""The files of a folder by what passgate does with them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from passgate.tasks.formats.discover import YAML_SUFFIXES, files_below, root_of, suite_of
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.paths import ground_of
from passgate.tasks.formats.evals.read.case_folders import CASE_FILES
from passgate.tasks.formats.evals.read.documents import Documents, LinePlaces
from passgate.tasks.formats.evals.read.lines import LINES_SUFFIX, sidecar_names
from passgate.tasks.formats.evals.read.recognise import Kind, has_list_of_tests, kind_of
from passgate.tasks.formats.evals.read.references import FILE_SCHEME, files_of
from passgate.tasks.formats.evals.read.scalars import KeyPath, scalars_of
from passgate.tasks.formats.evals.read.top_level import TESTS_KEYS

_LISTS = (*TESTS_KEYS, "scenarios")
_TEST_PATHS: frozenset[KeyPath] = frozenset(
    [
        *((key,) for key in _LISTS),
        *((key, None) for key in _LISTS),
        *((key, None, "include") for key in _LISTS),
        (None,),
        (None, "include"),
    ]
)
"""Where an eval file names files with tests."""
_PATH_STARTS = ("./", "../", FILE_SCHEME)
_SUFFIXES = frozenset({*YAML_SUFFIXES, LINES_SUFFIX})
_MAX_PATH = 1000


@dataclass(frozen=True)
class FolderFiles:
    """The YAML and JSONL files below a folder, each in one of the groups, all in order of their names."""

    tasks: tuple[Path, ...]
    """Tasks of passgate's own format, or what must be one by where it lies."""
    evals: tuple[Path, ...]
    """Eval files to read, and files of cases that no eval file takes in."""
    parts: tuple[Path, ...]
    """What the eval files take in."""
    others: tuple[Path, ...]
    """What is none of it."""


@dataclass(frozen=True)
class NamedFiles:
    """The files that are meant by paths of files and folders."""

    read: tuple[tuple[Path, Path], ...]
    """Those to read, each once, after the folder that its paths are relative to, absolute."""
    others: tuple[Path, ...]
    """Of folders: what is neither tasks nor evals."""


def files_of_paths(paths: Iterable[Path], environment: Mapping[str, str]) -> NamedFiles:
    """The files of paths, in order. `environment` are the variables of the process."""
    read: dict[tuple[Path, Path], None] = {}
    others: list[Path] = []
    for path in dict.fromkeys(paths):
        if not path.is_dir():
            read[root_of(path, path), path] = None
            continue
        found = files_of_folder(path, environment)
        others += found.others
        for file in (*found.tasks, *found.evals):
            read[root_of(file, path), file] = None
    return NamedFiles(tuple(read), tuple(others))


def files_of_folder(folder: Path, environment: Mapping[str, str]) -> FolderFiles:
    """What the files below a folder are. A file that an eval file takes in is not read a second time, but for suites
    of which it selects some tests.

    In a folder with a suite's name every other YAML file is a task. `environment` are the variables of the process.
    """
    absolute = folder.absolute()
    kinds = {file: kind_of(file) for file in sorted(files_below(absolute)) if _may_be_read(file)}
    readable = [file for file, kind in kinds.items() if kind in {"eval", "cases"}]
    taken = {file: _taken_by(file, kinds, absolute, environment) for file in readable}
    roots = frozenset(_roots(readable, taken))
    parts = {part for root in roots for part in _reached(root, taken)} - roots
    groups: dict[str, list[Path]] = {"tasks": [], "evals": [], "parts": [], "others": []}
    for file, kind in kinds.items():
        groups[_group(file, kind, roots, parts)].append(folder / file.relative_to(absolute))
    return FolderFiles(**{name: tuple(files) for name, files in groups.items()})


def _may_be_read(file: Path) -> bool:
    return file.suffix in _SUFFIXES or file.name.endswith(".eval.json")


def _group(file: Path, kind: Kind | None, roots: Collection[Path], parts: Collection[Path]) -> str:
    if kind == "task":
        return "tasks"
    if file in roots:
        return "evals"
    if file in parts:
        return "parts"
    return "tasks" if file.suffix in YAML_SUFFIXES and suite_of(file.absolute()) is not None else "others"


def _roots(files: Sequence[Path], taken: Mapping[Path, set[Path]]) -> list[Path]:
    """The files that are read for themselves: those that no other takes in, and one of every circle."""
    inner = {part for file in files for part in taken[file] if part != file}
    roots = [file for file in files if file not in inner]
    seen = {file for root in roots for file in _reached(root, taken)}
    for file in files:
        if file not in seen:
            roots.append(file)
            seen |= _reached(file, taken)
    return roots


def _reached(root: Path, taken: Mapping[Path, set[Path]]) -> set[Path]:
    """A file and all that it takes in."""
    seen, waiting = {root}, [root]
    while waiting:
        new = taken.get(waiting.pop(), set()) - seen
        seen |= new
        waiting.extend(new)
    return seen


def _taken_by(file: Path, kinds: Mapping[Path, Kind | None], folder: Path, environment: Mapping[str, str]) -> set[Path]:
    """The files of the folder that a file with tests takes in."""
    if file.suffix == LINES_SUFFIX:
        return {name for name in sidecar_names(file) if name in kinds and not has_list_of_tests(name)}
    documents = Documents(ground_of(file, folder), Complaints(), environment, str)
    found: set[Path] = set()
    scalars = list(scalars_of(file))
    for path, text in scalars:
        node = _reference(path, text, file, documents)
        if node is None:
            continue
        for named in files_of(node, documents):
            found |= _without_tests(named, file, kinds)
            if path in _TEST_PATHS:
                found |= _with_tests(named)
    # What a selection leaves of a suite would not be run otherwise.
    whole = {named for named in found if kinds.get(named) != "eval"} if any(map(_selects, scalars)) else found
    return whole & {*kinds}


def _selects(scalar: tuple[KeyPath, str]) -> bool:
    path, _ = scalar
    return len(path) > 2 and path[0] in _LISTS and path[2] == "select"


def _reference(path: KeyPath, text: str, file: Path, documents: Documents) -> Node | None:
    """A text of a file as a path that it may be; `None` where it is none."""
    is_path = text.startswith(_PATH_STARTS) or (Path(text).suffix in _SUFFIXES and not set(text) & set(" \n"))
    if not text or len(text) > _MAX_PATH or not (is_path or path in _TEST_PATHS):
        return None
    node = documents.interpolated(Node(text, LinePlaces(str(file)), file.parent))
    return node if isinstance(node.value, str) else None


def _with_tests(named: Path) -> set[Path]:
    """The files with tests that a path leads to."""
    if not named.is_dir():
        return {named}
    return {folder / name for folder in named.iterdir() for name in CASE_FILES}


def _without_tests(named: Path, file: Path, kinds: Mapping[Path, Kind | None]) -> set[Path]:
    """The files that belong to an eval file without being tests: one that it names, or those in a folder that it names,
    but for a folder that it lies in itself.
    """
    if not named.is_dir():
        return {named} if kinds.get(named) is None else set()
    if file.is_relative_to(named):
        return set()
    return {inner for inner, kind in kinds.items() if kind is None and inner.is_relative_to(named)}
