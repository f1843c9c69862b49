"""Which files below a folder are tasks and eval files, which suite they belong to, and what their paths start from."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

from passgate.tasks.formats.document import YAML_LOADER, SourceTexts, UnreadableFileError
from passgate.tasks.formats.findings import left_out
from passgate.tasks.model.task import Suite

YAML_SUFFIXES = frozenset({".yaml", ".yml"})
LINES_SUFFIX = ".jsonl"
CASE_FILES = ("case.yaml", "case.yml")
PROJECT_MARK = ".agentv"  # the folder of AgentV's settings, which lies at the top of a project
TEMPLATES_FOLDER = f"{PROJECT_MARK}/templates"
TESTS_KEYS = ("tests", "evalcases", "eval_cases", "cases")  # the names that the list of tests has had
SIDECARS = (".yaml", ".yml", ".eval.yaml", ".eval.yml")  # how a file beside a JSONL file ends that is about its tests
SUITES = {str(suite): suite for suite in Suite}  # by their names
KEYS_KEPT = 3  # as many as `_TEST_PATHS` and `select` need
KeyPath = tuple[str | None, ...]  # the first keys on the way to a text; `None` stands for any place in a list
Kind = Literal["task", "eval", "cases"]
_EVAL_SUFFIXES = (".eval.yaml", ".eval.yml", ".eval.json")
_EVAL_NAMES = frozenset({"eval.yaml", "eval.yml"})
_TASK_KEY = "task_id"
# A mapping with an `id` and one of these is a test.
_CASE_KEYS = frozenset({
    "input", "input_messages", "input_files", "vars", "turns", "criteria", "expected_outcome", "rubrics",
    "expected_output", "expected_messages", "assert", "assertions", "evaluators",
})  # fmt: skip
_LISTS = (*TESTS_KEYS, "scenarios")
# Where an eval file names files with tests.
_TEST_PATHS: frozenset[KeyPath] = frozenset(
    (*((key, *rest) for key in _LISTS for rest in ((), (None,), (None, "include"))), (None,), (None, "include"))
)
_SUFFIXES = frozenset({*YAML_SUFFIXES, LINES_SUFFIX})
_MAX_PATH = 1000


def files_below(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder, but for `_shared`, hidden folders and `node_modules`."""
    for entry in folder.iterdir():
        if entry.name.startswith((".", "_")) or entry.name == "node_modules":
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from files_below(entry)
        elif entry.is_file():
            yield entry


def find_suite(file: Path) -> Suite | None:
    """Return the suite whose folder a file lies in, by the innermost folder that has a suite's name."""
    return next((SUITES[part] for part in reversed(file.parts[:-1]) if part in SUITES), None)


def find_suites_folder(path: Path) -> Path:
    """Return the folder that paths in a task are relative to: the one that holds the suite's folder, else its own."""
    absolute = path.absolute()
    for folder in (absolute, *absolute.parents):
        if folder.name in SUITES and not folder.is_file():
            return folder.parent
    return absolute if absolute.is_dir() else absolute.parent


def find_root(file: Path, named: Path) -> Path:
    """Return the folder that paths in a file are relative to, which was found by a path: its own, or that of a folder.

    It is the one that holds the suite's folder; outside of suites the folder that was named, or the file's own.
    """
    if not named.is_dir():
        return find_suites_folder(named)
    return named.absolute() if find_suite(file.absolute()) is None else find_suites_folder(file)


@dataclass
class _Open:
    """A list or mapping that is being read."""

    path: KeyPath
    is_mapping: bool
    key: str | None = None
    awaits_key: bool = True

    def inner(self) -> KeyPath:
        """Return the path of the value that comes next."""
        return (*self.path, self.key if self.is_mapping else None)[:KEYS_KEPT]


def _texts(file: Path, sources: SourceTexts) -> Iterator[tuple[_Open, str, bool]]:
    """Yield every text with what it is in, and whether it is a key; an empty key first for each list or mapping. Stop
    where the file stops being YAML.
    """
    opened: list[_Open] = []
    # Events and not a document: they are cheap, and a file with a mistake further down still says what it takes in.
    with suppress(UnreadableFileError, yaml.YAMLError):
        for event in yaml.parse(sources.text(file), Loader=YAML_LOADER):
            outer = opened[-1] if opened else None
            if isinstance(event, yaml.CollectionEndEvent):
                opened.pop()
            elif isinstance(event, yaml.NodeEvent) and outer is not None:
                is_key, outer.awaits_key = outer.is_mapping and outer.awaits_key, not outer.awaits_key
                text = str(event.value) if isinstance(event, yaml.ScalarEvent) else ""
                outer.key = text if is_key else outer.key
                if not isinstance(event, yaml.CollectionStartEvent):
                    yield outer, text, is_key
            if isinstance(event, yaml.CollectionStartEvent):
                path = outer.inner() if outer else ()
                opened.append(_Open(path, isinstance(event, yaml.MappingStartEvent)))
                yield opened[-1], "", True


def file_kind(file: Path, sources: SourceTexts | None = None) -> Kind | None:
    """Return what a file is: a task of passgate's own format, an eval file, tests for an eval file to take in, or none
    of these (`None`), as the results of evals. If its content does not tell, its name does, so that an eval file with a
    mistake in it is still one.
    """
    if file.suffix == LINES_SUFFIX:
        # What git LFS has left out may be cases: the reader of cases reports what is missing.
        return "cases" if left_out(file) or any(_has_case_keys(keys) for keys in _line_keys(file)) else None
    is_yaml, name = file.suffix in YAML_SUFFIXES, file.name.lower()
    depth, keys = _head(file, sources or SourceTexts()) if is_yaml else (0, set[str]())
    if depth == 1 and _TASK_KEY in keys:
        return "task"
    if depth == 1 and (keys & {*TESTS_KEYS} or _is_claimed(keys)):
        return "eval"
    if _has_case_keys(keys) or (file.name in CASE_FILES and keys & _CASE_KEYS):
        return "cases"
    # A list of something else beside a data set, as the scores of its graders, has its name too.
    is_list_of_others = depth > 1 and keys.isdisjoint({"id", *_CASE_KEYS})
    is_data_set = is_yaml and name.startswith("dataset") and not is_list_of_others
    return "eval" if name in _EVAL_NAMES or name.endswith(_EVAL_SUFFIXES) or is_data_set else None


def _is_claimed(keys: set[str]) -> bool:
    """Return whether a dialect has files with these keys."""
    # Imported here: a suite of task files alone needs no dialect of eval files.
    from passgate.tasks.formats.evals.dialects import DIALECTS

    return any(dialect.claims(keys) for dialect in DIALECTS)


def _has_case_keys(keys: set[str]) -> bool:
    return "id" in keys and bool(keys & _CASE_KEYS)


def _head(file: Path, sources: SourceTexts) -> tuple[int, set[str]]:
    """Return the keys of a YAML file's mapping, depth 1, or of the first mapping in its list, depth 2, up to where they
    tell what the file is or something is wrong. Depth 0 without any.
    """
    first: _Open | None = None
    keys: set[str] = set()
    for outer, text, is_key in _texts(file, sources):
        if first is None and outer.is_mapping and outer.path in {(), (None,)}:
            first = outer
        if outer is first and is_key:
            keys.add(text)
            if not first.path and text in {_TASK_KEY, *TESTS_KEYS}:
                break
        elif first is not None and outer is not first and outer.path == (None,):
            break  # the next item of the list: what stands further back tells nothing
    return len(first.path) + 1 if first else 0, keys


def _line_keys(file: Path) -> Iterator[set[str]]:
    """Yield the keys of the first lines of a JSONL file that are mappings."""
    try:
        with file.open("rb") as stream:
            lines = stream.read(1024 * 1024).splitlines()  # the file may be large, and its first lines tell enough
    except OSError:
        return
    for line in lines[:20]:
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
            if isinstance(value, dict):
                yield set(value)


@dataclass(frozen=True)
class FolderFiles:
    """The YAML and JSONL files below a folder, each in one of the groups, all in order of their names."""

    tasks: tuple[Path, ...]  # tasks of passgate's own format, or what must be one by where it lies
    evals: tuple[Path, ...]  # eval files to read, and files of cases that no eval file takes in
    parts: tuple[Path, ...]  # what the eval files take in
    others: tuple[Path, ...]  # what is none of it


@dataclass(frozen=True)
class NamedFile:
    """A file that is to be read."""

    root: Path  # the folder that its paths are relative to, absolute
    file: Path
    is_eval: bool  # whether it is read as one with tests, and not as a task of passgate's own format


def path_files(
    paths: Iterable[Path], environment: Mapping[str, str], sources: SourceTexts
) -> tuple[list[NamedFile], tuple[Path, ...]]:
    """Return the files that paths of files and folders mean, in order, each once, and of folders the files that are
    neither tasks nor evals. `environment` are the variables of the process.
    """
    read: dict[NamedFile, None] = {}
    others: list[Path] = []
    for path in dict.fromkeys(paths):
        if not path.is_dir():
            kind = file_kind(path, sources) if path.is_file() else None
            is_eval = kind in {"eval", "cases"} or (kind is None and path.suffix not in YAML_SUFFIXES)
            read[NamedFile(find_root(path, path), path, is_eval)] = None
            continue
        found = folder_files(path, environment, sources)
        others += found.others
        read |= dict.fromkeys(NamedFile(find_root(file, path), file, is_eval=False) for file in found.tasks)
        read |= dict.fromkeys(NamedFile(find_root(file, path), file, is_eval=True) for file in found.evals)
    return [*read], tuple(others)


def folder_files(folder: Path, environment: Mapping[str, str], sources: SourceTexts | None = None) -> FolderFiles:
    """Return what the files below a folder are. A file that an eval file takes in is not read a second time, unless it
    is a suite of which only some tests are selected. In a suite's folder every other YAML file is a task. `environment`
    has the variables of the process.
    """
    sources = sources or SourceTexts()
    absolute = folder.absolute()
    files = (file for file in files_below(absolute) if file.suffix in _SUFFIXES or file.name.endswith(".eval.json"))
    kinds = {file: file_kind(file, sources) for file in sorted(files)}
    readable = [file for file, kind in kinds.items() if kind in {"eval", "cases"}]
    taken = {file: _taken_by(file, kinds, absolute, environment, sources) for file in readable}
    inner = {part for file in readable for part in taken[file] if part != file}
    roots = {file for file in readable if file not in inner}
    seen = {file for root in roots for file in _closure(root, taken)}
    for file in readable:
        if file not in seen:  # in a circle of files that take in one another: one of them is read for itself
            roots.add(file)
            seen |= _closure(file, taken)
    groups: dict[str, list[Path]] = {"tasks": [], "evals": [], "parts": [], "others": []}
    for file, kind in kinds.items():
        is_task = file.suffix in YAML_SUFFIXES and find_suite(file) is not None
        unread = "parts" if file in seen else "tasks" if is_task else "others"
        group = "tasks" if kind == "task" else "evals" if file in roots else unread
        groups[group].append(folder / file.relative_to(absolute))
    return FolderFiles(**{name: tuple(found) for name, found in groups.items()})


def _closure(root: Path, taken: Mapping[Path, set[Path]]) -> set[Path]:
    """Return a file and all that it takes in."""
    seen, waiting = {root}, [root]
    while waiting:
        new = taken.get(waiting.pop(), set()) - seen
        seen |= new
        waiting.extend(new)
    return seen


def _taken_by(
    file: Path, kinds: Mapping[Path, Kind | None], folder: Path, environment: Mapping[str, str], sources: SourceTexts
) -> set[Path]:
    """Return the files of the folder that a file with tests takes in."""
    if file.suffix == LINES_SUFFIX:
        heads = {name: _head(name, sources) for name in sidecar_names(file) if name in kinds}
        return {name for name, (depth, keys) in heads.items() if depth != 1 or keys.isdisjoint(TESTS_KEYS)}
    # Imported here: most suites have no eval files.
    from passgate.tasks.formats.evals.documents import FILE_SCHEME, Documents, find_files, find_ground
    from passgate.tasks.formats.evals.node import Complaints, Node, TextPlaces

    documents = Documents(find_ground(file, folder), Complaints(), environment, str)
    found: set[Path] = set()
    scalars = [(outer.inner(), text) for outer, text, is_key in _texts(file, SourceTexts()) if not is_key]
    for path, text in scalars:
        starts = text.startswith(("./", "../", FILE_SCHEME))
        is_path = starts or (Path(text).suffix in _SUFFIXES and not set(text) & set(" \n"))
        if not text or len(text) > _MAX_PATH or not (is_path or path in _TEST_PATHS):
            continue
        node = documents.interpolated(Node(text, TextPlaces(str(file)), file.parent))
        for named in find_files(node, documents) if isinstance(node.value, str) else ():
            if not named.is_dir():
                found |= {named} if path in _TEST_PATHS or kinds.get(named) is None else set()
                continue
            # What belongs to an eval file without being tests, as the files of a workspace; but a folder that the file
            # lies in itself holds more than that.
            if not file.is_relative_to(named):
                found |= {inner for inner, kind in kinds.items() if kind is None and inner.is_relative_to(named)}
            if path in _TEST_PATHS:
                found |= {inner / name for inner in named.iterdir() for name in CASE_FILES}
    # What a selection leaves of a suite would not be run otherwise.
    if any(len(path) > 2 and path[0] in _LISTS and path[2] == "select" for path, _ in scalars):
        found = {named for named in found if kinds.get(named) != "eval"}
    return found & {*kinds}


def sidecar_names(lines: Path) -> list[Path]:
    """Return the names that a JSONL file's sidecar may have."""
    return [lines.with_name(lines.name.removesuffix(LINES_SUFFIX) + suffix) for suffix in SIDECARS]


def has_tests(keys: Collection[str]) -> bool:
    """Return whether a mapping with these keys is an eval file with tests of its own."""
    return any(key in keys for key in _LISTS)
