"""`select` of an include: which of the imported tests are taken."""

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any

from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.raw import RawTest
from passgate.tasks.formats.evals.read.documents import Documents
from passgate.tasks.formats.schema_check import nearest

_KEYS = ("test_ids", "tags", "metadata")


def selected(tests: Sequence[RawTest], select: Node, documents: Documents) -> list[RawTest]:
    """The tests that a `select` takes: a pattern of ids, a list of them, or a mapping all of whose keys must hold."""
    wanted = _wanted(select, documents)
    if wanted is None:
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


def _wanted(select: Node, documents: Documents) -> dict[str, Any] | None:
    """The `select` in its long form; `None` when it cannot be used."""
    value = select.value
    if isinstance(value, str | list):
        value = {"test_ids": value}
    if not isinstance(value, dict):
        documents.refuse(select.problem("expected a pattern of ids, a list of them, or a mapping"))
        return None
    unknown = [key for key in value if key not in _KEYS]
    for key in unknown:
        documents.refuse(select.child(key).problem(f"unknown key{nearest(key, _KEYS)}", at_key=True))
    wrong = [key for key in ("test_ids", "tags") if not _are_texts(_listed(value.get(key, [])))]
    for key in wrong:
        documents.refuse(select.problem(f"{key}: expected a text or a list of texts"))
    if not isinstance(value.get("metadata", {}), dict):
        documents.refuse(select.child("metadata").problem("expected a mapping"))
        return None
    return None if unknown or wrong else value


def _holds(test: RawTest, wanted: dict[str, Any]) -> bool:
    patterns, tags = _listed(wanted.get("test_ids", "*")), _listed(wanted.get("tags", []))
    name, metadata = id_of(test) or "", _metadata_of(test)
    return (
        any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        and (not tags or any(tag in _tags_of(test) for tag in tags))
        and all(_meets(metadata.get(key), value) for key, value in wanted.get("metadata", {}).items())
    )


def _meets(found: Any, value: Any) -> bool:
    """Whether what a test says is, or holds, one of the wanted values."""
    return any(item in _listed(value) for item in _listed(found))


def _metadata_of(test: RawTest) -> dict[str, Any]:
    return _mapping(test.context.root.value.get("metadata")) | _mapping(test.node.value.get("metadata"))


def _tags_of(test: RawTest) -> list[Any]:
    root, own = test.context.root.value, test.node.value
    sources = (root.get("tags"), _mapping(root.get("metadata")).get("tags"), _mapping(own.get("metadata")).get("tags"))
    return [tag for source in (*sources, own.get("tags")) for tag in _listed(source)]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
