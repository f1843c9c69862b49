"""From an eval file to its tests: everything that it includes, in order, not yet read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from passgate.tasks.formats.evals.case_files import (
    CSV_SUFFIX,
    case_files,
    lines_beside,
    read_lines,
    read_table,
    says_something,
    sidecar_of,
)
from passgate.tasks.formats.evals.documents import PLAIN, Documents, files_of
from passgate.tasks.formats.evals.json_text import TextPlaces
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.raw import RawTest, SuiteContext, scenario_tests, selected, with_templates
from passgate.tasks.formats.evals.sources import Ground
from passgate.tasks.formats.evals.top_level import check_top_level, has_tests, tests_of, without_tests
from passgate.tasks.formats.evals.words import EvalWords, Parts, take_apart, word
from passgate.tasks.formats.folder import CASE_FILES, LINES_SUFFIX

MAX_DEPTH = 8  # of files that include files
MAX_OPENED = 20_000  # includes that fan out open the same files again and again without being a circle
_DOCUMENTS = frozenset({".yaml", ".yml", ".json"})


class Include(EvalWords):
    """Tests of another file."""

    include: str = word("An eval file, or raw cases; a pattern may be given.", needed=True)
    type: Literal["suite", "tests"] = word(
        "`suite`: with the input, graders and workspace of that file; `tests`: the cases alone.", needed=True
    )
    select: Any = word("Which tests: a pattern of ids, a list of them, or more.")
    run: dict[str, Any] = word("How the tests are run; it goes before the file's policy.")


@dataclass(frozen=True)
class _Scope:
    """What tests are gathered for."""

    context: SuiteContext
    documents: Documents
    trail: tuple[Path, ...]  # the files that are being read, the outermost first
    # Whether an eval file gives its cases alone where raw cases are expected; it is refused there otherwise.
    cases_only: bool = False

    def test(self, node: Node) -> RawTest:
        """A test of this scope's eval file."""
        return RawTest(node, self.context, self.context)


def raw_tests(
    file: Path, ground: Ground, complaints: Complaints, *, environment: Mapping[str, str], shown: Callable[[Path], str]
) -> tuple[RawTest, ...]:
    """Return the tests of an eval file of any dialect, in order. Whatever is wrong goes to the complaints.
    `environment` has the variables of the process, `shown` gives a file's name as users know it.
    """
    return tuple(_suite(file.absolute(), Documents(ground, complaints, environment, shown), ()))


def _suite(file: Path, documents: Documents, trail: tuple[Path, ...]) -> list[RawTest]:
    # The scope of raw cases that no eval file takes in.
    empty = Node({}, TextPlaces(documents.shown(file)), file.parent)
    bare = _Scope(SuiteContext(empty, file, documents.ground), documents, (*trail, file))
    if file.suffix == LINES_SUFFIX:
        return _whole_suite(file, sidecar_of(file, documents), bare)
    root = documents.read_root(file)
    if root is None:
        return []
    if isinstance(root.value, list):
        return _entries(root, bare)
    if not isinstance(root.value, dict):
        documents.refuse(root.problem("expected an eval file: a mapping with `tests`, or a list of tests"))
    elif has_tests(root.value):
        return _whole_suite(file, root, bare)
    elif _is_case(root, file):
        return [_case(root, file, bare)]
    elif lines := lines_beside(file):
        return _suite(lines, documents, trail)
    else:
        documents.refuse(without_tests(root))
    return []


def _whole_suite(file: Path, root: Node | None, scope: _Scope) -> list[RawTest]:
    """Return the tests of a mapping with tests, or of a JSONL file with what its sidecar, if it has one, says
    of them.
    """
    if root is not None:
        check_top_level(root, scope.documents.complaints)
        context = replace(scope.context, root=root)
        scope = replace(scope, context=context, documents=scope.documents.for_files_of(root))
    documents = scope.documents
    if root is None or file.suffix == LINES_SUFFIX:
        tests = _lines(file, scope)
    else:
        listed = tests_of(root, documents.complaints)
        if listed is None and root.get("scenarios") is None:
            documents.refuse(without_tests(root))
        tests = _entries(listed, scope) if listed is not None else []
        tests += scenario_tests(scope.context, documents)
    return with_templates(tests, scope.context, documents)


def _entries(tests: Node, scope: _Scope) -> list[RawTest]:
    """Return the tests of a list, those of imported suites first."""
    entries = [tests] if isinstance(tests.value, str) else list(tests.items()) if isinstance(tests.value, list) else []
    if not entries:
        what = "has no tests" if isinstance(tests.value, list) else "expected a list of tests, or a path of one"
        scope.documents.refuse(tests.problem(what))
    imported: list[RawTest] = []  # before the file's own, wherever they stand in it
    own: list[RawTest] = []
    for entry in entries:
        is_include = isinstance(entry.value, dict) and "include" in entry.value
        (imported if is_include and entry.value.get("type") == "suite" else own).extend(_entry(entry, scope))
    return [*imported, *own]


def _entry(entry: Node, scope: _Scope) -> list[RawTest]:
    """Return the tests that one item of a list of tests stands for."""
    if isinstance(entry.value, str):
        return [test for file in files_of(entry, scope.documents) for test in _file_tests(file, entry, scope)]
    if not isinstance(entry.value, dict):
        scope.documents.refuse(entry.problem("expected a test: a mapping, or the path of a file with tests"))
        return []
    if "include" in entry.value:
        parts = take_apart(entry, Include, scope.documents.complaints)
        return _included(parts, scope) if parts.sound else []
    return [scope.test(entry)]


def _included(include: Parts, scope: _Scope) -> list[RawTest]:
    reference, select, run = include.values["include"], include.get("select"), include.get("run")
    files, inner = files_of(reference, scope.documents), replace(scope, cases_only=True)
    if include.value("type") == "suite":
        root = scope.context.root
        parents = [parent for parent in (root, root.get("experiment"), root.get("execution")) if parent is not None]
        for workspace in filter(None, (parent.get("workspace") for parent in parents)):
            message = "a file that includes suites (`type: suite`) has no workspace; put it into the suites"
            scope.documents.refuse(workspace.problem(message, at_key=True))
        tests = [test for file in files for test in _imported(file, reference, scope)]
    else:
        tests = [test for file in files for test in _file_tests(file, reference, inner)]
    if select is not None and tests:
        tests = selected(tests, select, scope.documents)
    return tests if run is None else [replace(test, runs=(*test.runs, run)) for test in tests]


def _imported(file: Path, at: Node, scope: _Scope) -> list[RawTest]:
    """Return the tests of an imported suite: its own words apply, but for the runtime policy."""
    documents = replace(scope.documents, placeholder=PLAIN, own={}, environments={})
    # A file that cannot be read is a problem of its own, and no reason to doubt that it is a suite.
    root = documents.read_root(file) if file.suffix in _DOCUMENTS else None
    is_suite = file.suffix in _DOCUMENTS or file.suffix == LINES_SUFFIX
    if root is not None:
        is_suite = isinstance(root.value, dict) and (has_tests(root.value) or lines_beside(file) is not None)
    if not is_suite:
        documents.refuse(at.problem(f"{file.name!r} is no eval file; for raw cases write `type: tests`"))
        return []
    if _opened(file, at, scope) is None:
        return []
    return [replace(test, runtime=scope.context) for test in _suite(file, documents, scope.trail)]


def _opened(file: Path, at: Node, scope: _Scope) -> _Scope | None:
    """Return the scope inside of a file; `None` where it must not be opened."""
    documents = scope.documents
    if file in scope.trail:
        names = " -> ".join(documents.shown(step) for step in (*scope.trail[scope.trail.index(file) :], file))
        documents.refuse(at.problem(f"this include closes a circle: {names}"))
    elif len(scope.trail) >= MAX_DEPTH:
        documents.refuse(at.problem(f"files that include files, more than {MAX_DEPTH} deep"))
    elif len(documents.opened) >= MAX_OPENED:
        documents.refuse(at.problem(f"more than {MAX_OPENED} files are included"))
    else:
        documents.opened.append(file)
        return replace(scope, trail=(*scope.trail, file))
    return None


def _file_tests(file: Path, at: Node, scope: _Scope) -> list[RawTest]:
    documents = scope.documents
    if file.is_dir():
        return [test for case in case_files(file, at, documents) for test in _file_tests(case, at, scope)]
    inner = _opened(file, at, scope)
    if inner is None:
        return []
    if file.suffix == LINES_SUFFIX:
        sidecar = sidecar_of(file, documents)
        is_own = sidecar is not None and sidecar.places.file == scope.context.root.places.file
        if sidecar is None or is_own or scope.cases_only or not says_something(sidecar):
            return _lines(file, inner)
        return _refuse_whole(file, at, documents)
    if file.suffix == CSV_SUFFIX:
        return _lines(file, inner)
    if file.suffix in _DOCUMENTS:
        return _document_tests(file, at, inner)
    remedy = "write its tests into a YAML or JSONL file"
    documents.refuse(at.problem(f"{file.name!r} is not a file of tests that passgate reads; {remedy}"))
    return []


def _lines(file: Path, scope: _Scope) -> list[RawTest]:
    """Return the tests of a file with one a line, or one a row."""
    read, documents = read_table if file.suffix == CSV_SUFFIX else read_lines, scope.documents
    tests = [test for line in read(file, documents) for test in _entry(line, scope)]
    if not tests:
        documents.refuse(TextPlaces(documents.shown(file)).problem((), "there are no tests in this file"))
    return tests


def _document_tests(file: Path, at: Node, scope: _Scope) -> list[RawTest]:
    root, documents = scope.documents.read(file), scope.documents
    if root is None:
        return []
    if isinstance(root.value, list):
        return _entries(root, scope)
    if not isinstance(root.value, dict) or not (has_tests(root.value) or _is_case(root, file)):
        documents.refuse(at.problem(f"{file.name!r} holds no tests: expected a list of tests"))
        return []
    if not has_tests(root.value):
        return [_case(root, file, scope)]
    if not scope.cases_only:
        return _refuse_whole(file, at, documents)
    tests = tests_of(root, documents.complaints)
    if root.get("scenarios") is not None:
        documents.refuse(root.child("scenarios").problem("scenarios cannot be taken in with `type: tests`"))
    return [] if tests is None else _entries(tests, scope)


def _is_case(root: Node, file: Path) -> bool:
    """Whether a mapping without a list of tests is one itself."""
    return file.name in CASE_FILES or ("id" in root.value and "task_id" not in root.value)


def _case(root: Node, file: Path, scope: _Scope) -> RawTest:
    if file.name not in CASE_FILES:
        return scope.test(root)
    # In a folder of one case its name is the id, and the files beside it may be what the agent works on.
    beside = file.parent / "workspace"
    return replace(scope.test(root), default_id=file.parent.name, workspace=beside if beside.is_dir() else None)


def _refuse_whole(file: Path, at: Node, documents: Documents) -> list[RawTest]:
    # What an eval file says of its tests would be lost, so its author must say that this is meant.
    remedy = "`{include: ..., type: suite}` takes it in whole, `type: tests` its cases alone"
    documents.refuse(at.problem(f"{file.name!r} is an eval file of its own: {remedy}"))
    return []
