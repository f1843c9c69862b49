"""Tests as files give them, put together but not yet read, and the `include` entries that bring them."""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passgate.tasks.formats.evals.read.documents import Documents
from passgate.tasks.formats.evals.read.node import Node
from passgate.tasks.formats.evals.read.paths import Ground
from passgate.tasks.formats.schema_check import nearest

_SELECT_KEYS = ("test_ids", "tags", "metadata")
_INCLUDE_KEYS = ("include", "type", "select", "run")
_TYPES = ("suite", "tests")


@dataclass(frozen=True)
class SuiteContext:
    """An eval file: what it says of all its tests."""

    root: Node  # the whole document, a mapping; for a file of raw cases an empty one
    file: Path  # absolute
    ground: Ground


@dataclass(frozen=True)
class RawTest:
    """One test with everything that has a say in it."""

    node: Node  # a mapping; `${{ }}` are filled in, `{{ }}` are not
    # Whose input, graders and workspace apply: the imported suite's, or that of the file for raw cases.
    context: SuiteContext
    runtime: SuiteContext  # whose runtime policy (`experiment`, `execution`) applies: that of the file that is run
    runs: tuple[Node, ...] = ()  # the `run` mappings of the includes that brought it, innermost first
    default_id: str | None = None  # the id where the test says none: the name of its folder
    workspace: Path | None = None  # a folder beside the test that is its workspace template where it says none
    # A prompt template of the file (`prompts`), for the dialect in which tests are only variables.
    prompt: Node | None = None
    prompt_label: str | None = None  # tells the tests of several prompts apart


def selected(tests: Sequence[RawTest], select: Node, documents: Documents) -> list[RawTest]:
    """The tests that a `select` takes: a pattern of ids, a list of them, or a mapping all of whose keys must hold."""
    wanted = {"test_ids": select.value} if isinstance(select.value, str | list) else select.value
    if not isinstance(wanted, dict):
        documents.refuse(select.problem("expected a pattern of ids, a list of them, or a mapping"))
        return list(tests)
    before = len(documents.complaints.problems)
    documents.refuse_unknown_keys(select.with_value(wanted), _SELECT_KEYS)
    for key in ("test_ids", "tags"):
        if not all(isinstance(item, str) for item in _listed(wanted.get(key))):
            documents.refuse(select.problem(f"{key}: expected a text or a list of texts"))
    if not isinstance(wanted.get("metadata", {}), dict):
        documents.refuse(select.child("metadata").problem("expected a mapping"))
    if len(documents.complaints.problems) > before:
        return list(tests)
    taken = [test for test in tests if _holds(test, wanted)]
    if not taken:
        ids = nearest(select.value if isinstance(select.value, str) else "", [id_of(test) or "" for test in tests][:20])
        documents.refuse(select.problem(f"no test is selected{ids}"))
    return taken


def id_of(test: RawTest) -> str | None:
    """The id that a test has, or gets where it says none."""
    said = test.node.value.get("id") if isinstance(test.node.value, dict) else None
    return str(said) if said is not None else test.default_id


def _holds(test: RawTest, wanted: dict[str, Any]) -> bool:
    patterns, tags = _listed(wanted.get("test_ids", "*")), _listed(wanted.get("tags", []))
    name = id_of(test) or ""
    # The context of raw cases is the file that takes them in, so the tags of a suite taken apart do not count.
    suite, own = test.context.root.value, test.node.value
    said = (suite.get("metadata"), own.get("metadata"))
    of_suite, of_test = (metadata if isinstance(metadata, dict) else {} for metadata in said)
    metadata = of_suite | of_test
    sources = (suite.get("tags"), of_suite.get("tags"), of_test.get("tags"), own.get("tags"))
    known_tags = [tag for source in sources for tag in _listed(source)]
    return (
        any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        and (not tags or any(tag in known_tags for tag in tags))
        and all(
            any(item in _listed(value) for item in _listed(metadata.get(key)))
            for key, value in wanted.get("metadata", {}).items()
        )
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def is_include(value: object) -> bool:
    """Whether an item of a list of tests is an include."""
    return isinstance(value, dict) and "include" in value


def is_usable(entry: Node, documents: Documents) -> bool:
    """Whether an include is right. Type `suite` takes in eval files with what they say of all tests, `tests` only
    cases.
    """
    before = len(documents.complaints.problems)
    documents.refuse_unknown_keys(entry, _INCLUDE_KEYS)
    reference, kind, run = entry.child("include"), entry.get("type"), entry.get("run")
    if not isinstance(reference.value, str):
        documents.refuse(reference.problem("expected a path or a pattern"))
    if kind is None:
        documents.refuse(entry.problem("the key 'type' is missing: suite or tests"))
    elif kind.value not in _TYPES:
        documents.refuse(kind.problem(f"{kind.value!r} is not one of the allowed values{nearest(kind.value, _TYPES)}"))
    if run is not None and not isinstance(run.value, dict):
        documents.refuse(run.problem("expected a mapping"))
    return len(documents.complaints.problems) == before
