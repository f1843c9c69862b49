"""From an eval file to its tests: everything that it includes, in order, not yet read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from passgate.tasks.formats.evals.read.case_files import (
    CASE_FILES,
    CSV_SUFFIX,
    LINES_SUFFIX,
    case_files,
    lines_beside,
    read_lines,
    read_table,
    says_something,
    sidecar_of,
    workspace_beside,
)
from passgate.tasks.formats.evals.read.documents import Documents, LinePlaces, files_of
from passgate.tasks.formats.evals.read.node import Complaints, Node
from passgate.tasks.formats.evals.read.paths import Ground
from passgate.tasks.formats.evals.read.raw import (
    RawTest,
    SuiteContext,
    check_parent,
    is_include,
    is_usable,
    selected,
)
from passgate.tasks.formats.evals.read.templated import scenario_tests, with_templates
from passgate.tasks.formats.evals.read.top_level import check_top_level, has_tests, tests_of, without_tests

MAX_DEPTH = 8
"""Of files that include files."""
MAX_OPENED = 20_000
"""Times that files are opened for one eval file."""
_DOCUMENTS = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True)
class _Scope:
    """What tests are gathered for."""

    context: SuiteContext
    documents: Documents
    trail: tuple[Path, ...]
    """The files that are being read, the outermost first."""
    cases_only: bool = False
    """Whether an eval file gives its cases alone where raw cases are expected; it is refused there otherwise."""


def raw_tests(
    file: Path,
    ground: Ground,
    complaints: Complaints,
    *,
    environment: Mapping[str, str],
    shown: Callable[[Path], str],
) -> tuple[RawTest, ...]:
    """The tests of an eval file of any dialect, in order, on its own ground. Whatever is wrong goes to the complaints.

    `environment` are the variables of the process, `shown` is a file's name as users know it.
    """
    documents = Documents(ground, complaints, environment, shown)
    return tuple(_suite(file.absolute(), documents, ()))


def _suite(file: Path, documents: Documents, trail: tuple[Path, ...]) -> list[RawTest]:
    """The tests of an eval file with what it says of them."""
    if file.suffix == LINES_SUFFIX:
        return _lines_suite(file, documents, trail)
    root = documents.read_root(file)
    if root is None:
        return []
    if isinstance(root.value, list):
        return _entries(root, _bare(file, documents, trail))
    if not isinstance(root.value, dict):
        documents.refuse(root.problem("expected an eval file: a mapping with `tests`, or a list of tests"))
        return []
    if has_tests(root.value):
        return _mapping_suite(root, file, documents.for_files_of(root), trail)
    return _without_tests(root, file, documents, trail)


def _without_tests(root: Node, file: Path, documents: Documents, trail: tuple[Path, ...]) -> list[RawTest]:
    """The tests of a mapping that has no list of them: it is one, or it stands beside them."""
    if _is_case(root, file):
        return [_case(root, file, _bare(file, documents, trail))]
    lines = lines_beside(file)
    if lines is not None:
        return _lines_suite(lines, documents, trail)
    documents.refuse(without_tests(root))
    return []


def _mapping_suite(root: Node, file: Path, documents: Documents, trail: tuple[Path, ...]) -> list[RawTest]:
    check_top_level(root, documents.complaints)
    scope = _Scope(SuiteContext(root, file, documents.ground), documents, (*trail, file))
    tests = tests_of(root, documents.complaints)
    gathered = _entries(tests, scope) if tests is not None else []
    if tests is None and root.get("scenarios") is None:
        documents.refuse(without_tests(root))
    return with_templates([*gathered, *scenario_tests(scope.context, documents)], scope.context, documents)


def _lines_suite(file: Path, documents: Documents, trail: tuple[Path, ...]) -> list[RawTest]:
    """The tests of a JSONL file, with what its sidecar says of them."""
    scope, sidecar = _bare(file, documents, trail), sidecar_of(file, documents)
    if sidecar is not None:
        check_top_level(sidecar, documents.complaints)
        context = replace(scope.context, root=sidecar)
        scope = replace(scope, context=context, documents=documents.for_files_of(sidecar))
    return with_templates(_lines(file, scope), scope.context, scope.documents)


def _bare(file: Path, documents: Documents, trail: tuple[Path, ...]) -> _Scope:
    """The scope of raw cases that no eval file takes in."""
    root = Node({}, LinePlaces(documents.shown(file)), file.parent)
    return _Scope(SuiteContext(root, file, documents.ground), documents, (*trail, file))


def _entries(tests: Node, scope: _Scope) -> list[RawTest]:
    """The tests of a list, those of imported suites first."""
    entries = [tests] if isinstance(tests.value, str) else list(tests.items()) if isinstance(tests.value, list) else []
    if not entries:
        what = "has no tests" if isinstance(tests.value, list) else "expected a list of tests, or a path of one"
        scope.documents.refuse(tests.problem(what))
    imported: list[RawTest] = []
    own: list[RawTest] = []
    for entry in entries:
        found = _entry(entry, scope)
        imports_suite = is_include(entry.value) and entry.value.get("type") == "suite"
        (imported if imports_suite else own).extend(found)
    return [*imported, *own]


def _entry(entry: Node, scope: _Scope) -> list[RawTest]:
    """The tests that one item of a list of tests stands for."""
    if isinstance(entry.value, str):
        return [test for file in files_of(entry, scope.documents) for test in _file_tests(file, entry, scope)]
    if not isinstance(entry.value, dict):
        scope.documents.refuse(entry.problem("expected a test: a mapping, or the path of a file with tests"))
        return []
    if is_include(entry.value):
        return _included(entry, scope) if is_usable(entry, scope.documents) else []
    return [RawTest(entry, scope.context, scope.context)]


def _included(include: Node, scope: _Scope) -> list[RawTest]:
    reference, select, run = include.child("include"), include.get("select"), include.get("run")
    files = files_of(reference, scope.documents)
    if include.value["type"] == "suite":
        check_parent(scope.context.root, scope.documents)
        tests = [test for file in files for test in _imported(file, reference, scope)]
    else:
        inner = replace(scope, cases_only=True)
        tests = [test for file in files for test in _file_tests(file, reference, inner)]
    if select is not None and tests:
        tests = selected(tests, select, scope.documents)
    return tests if run is None else [replace(test, runs=(*test.runs, run)) for test in tests]


def _imported(file: Path, at: Node, scope: _Scope) -> list[RawTest]:
    """The tests of an imported suite: its own words apply, but for the runtime policy."""
    documents = scope.documents.plain()
    if not _is_suite(file, documents):
        documents.refuse(at.problem(f"{file.name!r} is no eval file; for raw cases write `type: tests`"))
        return []
    if _opened(file, at, scope) is None:
        return []
    return [replace(test, runtime=scope.context) for test in _suite(file, documents, scope.trail)]


def _is_suite(file: Path, documents: Documents) -> bool:
    """Whether a file says something of its tests; true for one that cannot be read, which is a problem of its own."""
    if file.suffix not in _DOCUMENTS:
        return file.suffix == LINES_SUFFIX
    root = documents.read_root(file)
    if root is None:
        return True
    return isinstance(root.value, dict) and (has_tests(root.value) or lines_beside(file) is not None)


def _opened(file: Path, at: Node, scope: _Scope) -> _Scope | None:
    """The scope inside of a file; `None` where it must not be opened."""
    documents = scope.documents
    if file in scope.trail:
        names = " -> ".join(documents.shown(step) for step in (*scope.trail[scope.trail.index(file) :], file))
        documents.refuse(at.problem(f"this include closes a circle: {names}"))
        return None
    if len(scope.trail) >= MAX_DEPTH:
        documents.refuse(at.problem(f"files that include files, more than {MAX_DEPTH} deep"))
        return None
    if len(documents.opened) >= MAX_OPENED:
        documents.refuse(at.problem(f"more than {MAX_OPENED} files are included"))
        return None
    documents.opened.append(file)
    return replace(scope, trail=(*scope.trail, file))


def _file_tests(file: Path, at: Node, scope: _Scope) -> list[RawTest]:
    """The raw cases of a file or of a folder with cases."""
    if file.is_dir():
        cases = case_files(file, at, scope.documents)
        return [test for case in cases for test in _file_tests(case, at, scope)]
    inner = _opened(file, at, scope)
    if inner is None:
        return []
    if file.suffix == LINES_SUFFIX:
        return _line_tests(file, at, inner)
    if file.suffix == CSV_SUFFIX:
        rows = [RawTest(row, scope.context, scope.context) for row in read_table(file, scope.documents)]
        return _some(rows, file, scope.documents)
    if file.suffix in _DOCUMENTS:
        return _document_tests(file, at, inner)
    remedy = "write its tests into a YAML or JSONL file"
    scope.documents.refuse(at.problem(f"{file.name!r} is not a file of tests that passgate reads; {remedy}"))
    return []


def _line_tests(file: Path, at: Node, scope: _Scope) -> list[RawTest]:
    sidecar = sidecar_of(file, scope.documents)
    if sidecar is None or sidecar.places.file == scope.context.root.places.file or not says_something(sidecar):
        return _lines(file, scope)
    return _lines(file, scope) if scope.cases_only else _refuse_whole(file, at, scope.documents)


def _lines(file: Path, scope: _Scope) -> list[RawTest]:
    tests = [test for line in read_lines(file, scope.documents) for test in _entry(line, scope)]
    return _some(tests, file, scope.documents)


def _some(tests: list[RawTest], file: Path, documents: Documents) -> list[RawTest]:
    if not tests:
        documents.refuse(LinePlaces(documents.shown(file)).problem((), "there are no tests in this file"))
    return tests


def _document_tests(file: Path, at: Node, scope: _Scope) -> list[RawTest]:
    """The raw cases of a YAML or JSON file."""
    root = scope.documents.read(file)
    if root is None:
        return []
    if isinstance(root.value, list):
        return _entries(root, scope)
    if isinstance(root.value, dict) and has_tests(root.value):
        return _cases_of(root, scope) if scope.cases_only else _refuse_whole(file, at, scope.documents)
    if isinstance(root.value, dict) and _is_case(root, file):
        return [_case(root, file, scope)]
    scope.documents.refuse(at.problem(f"{file.name!r} holds no tests: expected a list of tests"))
    return []


def _is_case(root: Node, file: Path) -> bool:
    """Whether a mapping without a list of tests is one itself."""
    return file.name in CASE_FILES or ("id" in root.value and "task_id" not in root.value)


def _case(root: Node, file: Path, scope: _Scope) -> RawTest:
    test = RawTest(root, scope.context, scope.context)
    if file.name not in CASE_FILES:
        return test
    return replace(test, default_id=file.parent.name, workspace=workspace_beside(file))


def _cases_of(root: Node, scope: _Scope) -> list[RawTest]:
    """The tests of an eval file without what it says of them."""
    tests = tests_of(root, scope.documents.complaints)
    if root.get("scenarios") is not None:
        scope.documents.refuse(root.child("scenarios").problem("scenarios cannot be taken in with `type: tests`"))
    return [] if tests is None else _entries(tests, scope)


def _refuse_whole(file: Path, at: Node, documents: Documents) -> list[RawTest]:
    """What an eval file says of its tests would be lost, so it must be said that this is meant."""
    remedy = "`{include: ..., type: suite}` takes it in whole, `type: tests` its cases alone"
    documents.refuse(at.problem(f"{file.name!r} is an eval file of its own: {remedy}"))
    return []
