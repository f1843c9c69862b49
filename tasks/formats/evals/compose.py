"""From an eval file to its tests: everything that it includes, in order, not yet read."""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from passgate.tasks.formats.evals.case_files import (
    CSV_SUFFIX,
    case_files,
    find_sidecar,
    lines_beside,
    read_lines,
    read_table,
    says_something,
)
from passgate.tasks.formats.evals.dialects import find_dialect, read_root
from passgate.tasks.formats.evals.documents import PLAIN, Documents, find_files
from passgate.tasks.formats.evals.node import Node, TextPlaces
from passgate.tasks.formats.evals.raw import RawTest, SuiteContext
from passgate.tasks.formats.evals.runtime import GraderLists, LimitWords
from passgate.tasks.formats.evals.words import EvalWords, Parts, take_apart, word
from passgate.tasks.formats.folder import CASE_FILES, LINES_SUFFIX, TESTS_KEYS, has_tests
from passgate.tasks.formats.schema_check import nearest

_REPEAT = "unknown key; write `evaluate_options: {repeat: N}`"
_PROMPTS = "unknown key; name the prompts of a test under its `prompts`"


class SuiteWords(LimitWords, GraderLists):
    """An eval file."""

    NULL = frozenset({"name", "version", "description"})
    OWN_PREFIX = "x-"
    NESTED = ""
    EXPECTED = {
        "name": "1 to 64 lower-case letters, digits and single hyphens, as in code-review",
        "version": "a version, as in 1.0",
    }
    # Keys that the other tool has or had.
    REFUSED = {
        **dict.fromkeys(("repeat", "runs"), _REPEAT),
        "provider_prompt_map": _PROMPTS,
        "derived_metrics": "unknown key; ask the history for it, or write a `script` grader that gives it as its score",
        "early_exit": "unknown key; leave it out: trials that cannot change the verdict are not run",
        "evaluator": "unknown key; write `assert`",
        "expected_output": "unknown key; write it into each test, or as `default_test: {vars: {expected_output: ...}}`",
        "graders": "unknown key; name the judge in gates.yaml, under `judge`",
        "imports": "unknown key; write `tests: [{include: PATH, type: suite}]`",
        "model": "unknown key; name it with --agent, as in openai:MODEL, or in agents.yaml",
        "nunjucks_filters": "unknown key; write the finished texts into `vars`",
        "on_run_complete": "unknown key; write `extensions: [file://PATH:afterAll]`",
        "output_path": "unknown key; leave it out: `passgate run --json` and `passgate report` give the results",
        "workers": "unknown key; write `concurrency` into gates.yaml, or --jobs",
    }

    # One letter is enough: one page of the formats says from 1 character on, another from 2.
    name: Annotated[str, Field(pattern=r"^[a-z](-?[a-z0-9])*$", max_length=64)] = word("The suite's name.")
    version: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.+-]+)?$")] | float = word(
        "Version of the format or of the suite; not used."
    )
    description: Annotated[str, Field(max_length=2048)] = word("What the tests are about.")
    suite: str = word("The suite of passgate that the tests belong to, where their folder does not say it.")
    tests: Any = word("The tests, or the path of a file or folder with tests.", *TESTS_KEYS)
    input: Any = word("Messages before those of every test.")
    input_files: list[str] | str = word("Files attached to every test whose input is a text.")
    rubrics: Any = word("Items of a rubric for every test.")
    execution: Any = word("How the tests are run.")
    experiment: Any = word("How the tests are run.")
    run: Any = word("How the tests are run.")
    policy: Any = word("How the tests are run.")
    evaluate_options: Any = word("Repeats and limits.")
    target: Any = word("An agent of targets.yaml; passgate takes the one of --agent.")
    targets: Any = word("Agents of targets.yaml; passgate takes the one of --agent.")
    providers: Any = word("The agents' names in the other tool.")
    workspace: Any = word("The folder that the agent works in, or the file that says it.")
    environment: Any = word("The folder that the agent works in, and its variables.")
    extensions: Any = word("Functions of modules around the trials.")
    tags: list[Any] | dict[str, Any] | str = word("Tags of every test.")
    metadata: dict[str, Any] = word("Metadata of every test.")
    governance: dict[str, Any] = word("Goes into every test's metadata: owasp, mitre, controls, risk_tier, owner.")
    prompts: Any = word("Templates that every test's variables go into.")
    default_test: Any = word("What every test has in addition.")
    scenarios: Any = word("Lists of variables, each with the same tests.")
    env: Any = word("Values for `{{ env.NAME }}`.")
    defaults: Any = word("A place for YAML anchors, or names of another tool's providers; not used.")
    preprocessors: Any = word("Programs that turn files into text for graders; passgate has none.")
    author: Any = word("Who wrote it.")
    license: Any = word("As in Apache-2.0.")
    requires: Any = word("Versions of other tools; not used.")
    category: Any = word("What kind of tests they are.")
    schema_: Any = word("The schema for editors.", "$schema")


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


class Select(EvalWords):
    """Which tests of a file are taken."""

    test_ids: str | list[str] = word("Patterns of ids.")
    tags: str | list[str] = word("Tags of which a test has one.")
    metadata: dict[str, Any] = word("What the metadata of a test must hold.")


@dataclass(frozen=True)
class _Scope:
    """What tests are gathered for."""

    context: SuiteContext
    trail: tuple[Path, ...]  # the files that are being read, the outermost first
    # Whether an eval file gives its cases alone where raw cases are expected; it is refused there otherwise.
    cases_only: bool = False

    @property
    def documents(self) -> Documents:
        return self.context.documents


def raw_tests(file: Path, documents: Documents, trail: tuple[Path, ...] = ()) -> list[RawTest]:
    """Return the tests of an eval file of any dialect, in order. Whatever is wrong goes to the documents' complaints.
    A JSONL file has one test a line, and what its sidecar says of them. `trail` are the files that include it.
    """
    # The scope of raw cases that no eval file takes in.
    empty = Parts.empty(Node({}, TextPlaces(documents.shown(file)), file.parent))
    scope = _Scope(SuiteContext(empty, file, documents), (*trail, file))
    is_lines = file.suffix == LINES_SUFFIX
    read = find_sidecar(file, documents) if is_lines else read_root(file, documents)
    if read is None:
        return _lines(file, scope) if is_lines else []
    root, dialect = read
    if isinstance(root.value, list):
        return _entries(root, scope)
    if not isinstance(root.value, dict):
        documents.refuse(root, "expected an eval file: a mapping with `tests`, or a list of tests")
        return []
    if not is_lines and not has_tests(root.value):
        if _is_case(root, file):
            return [_case(root, file, scope)]
        if lines := lines_beside(file):
            return raw_tests(lines, documents, trail)
        _refuse_without_tests(root, documents)
        return []
    parts = take_apart(root, SuiteWords, documents)
    context = SuiteContext(parts, file, dialect.reader(documents, root))
    scope, listed = replace(scope, context=context), parts.get("tests")
    if not is_lines and listed is None and parts.get("scenarios") is None:
        _refuse_without_tests(root, documents)
    tests = _lines(file, scope) if is_lines else [] if listed is None else _entries(listed, scope)
    return [*dialect.expand(tests, context)]


def _refuse_without_tests(root: Node, documents: Documents) -> None:
    """Say what is wrong with an eval file that has no tests under any name."""
    empty = [key for key in TESTS_KEYS if key in root.value]
    if empty:
        documents.refuse(root.child(empty[0]), "there are no tests", at_key=True)
    elif close := [key for key in root.value if get_close_matches(key, TESTS_KEYS, n=1)]:
        documents.refuse(root.child(close[0]), "unknown key; did you mean 'tests'?", at_key=True)
    else:
        documents.refuse(root, "there are no tests: the key 'tests' is missing")


def _entries(tests: Node, scope: _Scope) -> list[RawTest]:
    """Return the tests of a list, those of imported suites first."""
    entries = [tests] if isinstance(tests.value, str) else list(tests.items()) if isinstance(tests.value, list) else []
    if not entries:
        what = "has no tests" if isinstance(tests.value, list) else "expected a list of tests, or a path of one"
        scope.documents.refuse(tests, what)
    imported: list[RawTest] = []  # before the file's own, wherever they stand in it
    own: list[RawTest] = []
    for entry in entries:
        is_include = isinstance(entry.value, dict) and "include" in entry.value
        (imported if is_include and entry.value.get("type") == "suite" else own).extend(_entry(entry, scope))
    return [*imported, *own]


def _entry(entry: Node, scope: _Scope) -> list[RawTest]:
    """Return the tests that one item of a list of tests stands for."""
    if isinstance(entry.value, str):
        return [test for file in find_files(entry, scope.documents) for test in _file_tests(file, entry, scope)]
    if not isinstance(entry.value, dict):
        scope.documents.refuse(entry, "expected a test: a mapping, or the path of a file with tests")
        return []
    if "include" not in entry.value:
        return [RawTest(entry, scope.context, scope.context)]
    include = take_apart(entry, Include, scope.documents)
    if not include.sound:
        return []
    reference, select, run = include.values["include"], include.get("select"), include.get("run")
    files, inner = find_files(reference, scope.documents), replace(scope, cases_only=True)
    if include.value("type") == "suite":
        root = scope.context.root
        parents = (root, root.get("experiment"), root.get("execution"))
        for workspace in filter(None, (parent.get("workspace") for parent in parents if parent is not None)):
            message = "a file that includes suites (`type: suite`) has no workspace; put it into the suites"
            scope.documents.refuse(workspace, message, at_key=True)
        tests = [test for file in files for test in _import_suite(file, reference, scope)]
    else:
        tests = [test for file in files for test in _file_tests(file, reference, inner)]
    if select is not None and tests:
        tests = select_tests(tests, select, scope.documents)
    return tests if run is None else [replace(test, runs=(*test.runs, run)) for test in tests]


def _import_suite(file: Path, at: Node, scope: _Scope) -> list[RawTest]:
    """Return the tests of an imported suite: its own words apply, but for the runtime policy."""
    documents = replace(scope.documents, placeholder=PLAIN, own={}, environments={})
    # A file that cannot be read is a problem of its own, and no reason to doubt that it is a suite.
    root = read_root(file, documents) if file.suffix in _DOCUMENTS else None
    is_suite = file.suffix in _DOCUMENTS or file.suffix == LINES_SUFFIX
    if root is not None:
        value = root.node.value
        is_suite = isinstance(value, dict) and (has_tests(value) or lines_beside(file) is not None)
    if not is_suite:
        documents.refuse(at, f"{file.name!r} is not an eval file; for raw cases write `type: tests`")
    if not is_suite or _open_file(file, at, scope) is None:
        return []
    return [replace(test, runtime=scope.context) for test in raw_tests(file, documents, scope.trail)]


def _open_file(file: Path, at: Node, scope: _Scope) -> _Scope | None:
    """Return the scope inside of a file; `None` where it must not be opened."""
    documents = scope.documents
    if file in scope.trail:
        names = " -> ".join(documents.shown(step) for step in (*scope.trail[scope.trail.index(file) :], file))
        documents.refuse(at, f"this include closes a circle: {names}")
    elif len(scope.trail) >= MAX_DEPTH:
        documents.refuse(at, f"files that include files, more than {MAX_DEPTH} deep")
    elif len(documents.opened) >= MAX_OPENED:
        documents.refuse(at, f"more than {MAX_OPENED} files are included")
    else:
        documents.opened.append(file)
        return replace(scope, trail=(*scope.trail, file))
    return None


def _file_tests(file: Path, at: Node, scope: _Scope) -> list[RawTest]:
    documents = scope.documents
    if file.is_dir():
        return [test for case in case_files(file, at, documents) for test in _file_tests(case, at, scope)]
    inner = _open_file(file, at, scope)
    if inner is None:
        return []
    if file.suffix in _DOCUMENTS:
        return _document_tests(file, at, inner)
    if file.suffix == LINES_SUFFIX:
        sidecar = find_sidecar(file, documents)
        is_own = sidecar is not None and sidecar.node.places.file == scope.context.root.node.places.file
        if sidecar is not None and not is_own and not scope.cases_only and says_something(sidecar.node):
            return _refuse_whole(file, at, documents)
    elif file.suffix != CSV_SUFFIX:
        remedy = "write its tests into a YAML or JSONL file"
        documents.refuse(at, f"{file.name!r} is not a file of tests that passgate reads; {remedy}")
        return []
    return _lines(file, inner)


def _lines(file: Path, scope: _Scope) -> list[RawTest]:
    """Return the tests of a file with one a line, or one a row."""
    read, documents = read_table if file.suffix == CSV_SUFFIX else read_lines, scope.documents
    tests = [test for line in read(file, documents) for test in _entry(line, scope)]
    if not tests:
        documents.refuse_file(file, "there are no tests in this file")
    return tests


def _document_tests(file: Path, at: Node, scope: _Scope) -> list[RawTest]:
    documents = scope.documents
    if (root := documents.read(file)) is None:
        return []
    root = find_dialect(root).canonical(root)
    if isinstance(root.value, list):
        return _entries(root, scope)
    if not isinstance(root.value, dict) or not (has_tests(root.value) or _is_case(root, file)):
        documents.refuse(at, f"{file.name!r} holds no tests: expected a list of tests")
        return []
    if not has_tests(root.value):
        return [_case(root, file, scope)]
    if not scope.cases_only:
        return _refuse_whole(file, at, documents)
    said = {key: root.value[key] for key in (*TESTS_KEYS, "scenarios") if key in root.value}
    parts = take_apart(root.with_value(said), SuiteWords, documents)
    if (scenarios := parts.get("scenarios")) is not None:
        documents.refuse(scenarios, "scenarios cannot be taken in with `type: tests`")
    tests = parts.get("tests")
    return [] if tests is None else _entries(tests, scope)


def _is_case(root: Node, file: Path) -> bool:
    """Return whether a mapping without a list of tests is one itself."""
    return file.name in CASE_FILES or ("id" in root.value and "task_id" not in root.value)


def _case(root: Node, file: Path, scope: _Scope) -> RawTest:
    test = RawTest(root, scope.context, scope.context)
    if file.name not in CASE_FILES:
        return test
    # In a folder of one case its name is the id, and the files beside it may be what the agent works on.
    beside = file.parent / "workspace"
    return replace(test, default_id=file.parent.name, workspace=beside if beside.is_dir() else None)


def _refuse_whole(file: Path, at: Node, documents: Documents) -> list[RawTest]:
    # What an eval file says of its tests would be lost, so its author must say that this is meant.
    remedy = "`{include: ..., type: suite}` takes it in whole, `type: tests` its cases alone"
    documents.refuse(at, f"{file.name!r} is an eval file of its own: {remedy}")
    return []


def select_tests(tests: Sequence[RawTest], select: Node, documents: Documents) -> list[RawTest]:
    """Return the tests that a `select` takes: by patterns of ids, or by a mapping all of whose keys must hold."""
    wanted = {"test_ids": select.value} if isinstance(select.value, str | list) else select.value
    if not isinstance(wanted, dict):
        documents.refuse(select, "expected a pattern of ids, a list of them, or a mapping")
        return list(tests)
    parts = take_apart(select.with_value(wanted), Select, documents)
    if not parts.sound:
        return list(tests)
    taken = [test for test in tests if _holds(test, wanted)]
    if not taken:
        ids = nearest(select.value if isinstance(select.value, str) else "", [test.id or "" for test in tests][:20])
        documents.refuse(select, f"no test is selected{ids}")
    return taken


def _holds(test: RawTest, wanted: dict[str, Any]) -> bool:
    patterns, tags = _as_list(wanted.get("test_ids", "*")), _as_list(wanted.get("tags", []))
    name = test.id or ""
    # The context of raw cases is the file that takes them in, so the tags of a suite taken apart do not count.
    suite, own = test.context.root, test.node.value
    said = (suite.value("metadata"), own.get("metadata"))
    of_suite, of_test = (metadata if isinstance(metadata, dict) else {} for metadata in said)
    metadata = of_suite | of_test
    sources = (suite.value("tags"), of_suite.get("tags"), of_test.get("tags"), own.get("tags"))
    known_tags = [tag for source in sources for tag in _as_list(source)]
    return (
        any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        and (not tags or any(tag in known_tags for tag in tags))
        and all(
            any(item in _as_list(value) for item in _as_list(metadata.get(key)))
            for key, value in wanted.get("metadata", {}).items()
        )
    )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
