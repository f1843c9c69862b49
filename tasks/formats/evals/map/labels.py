"""What is known of a test beside what it is: its metadata, its tags, and which of the four suites it belongs to."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from passgate.tasks.formats.discover import SUITES, suite_of
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Node, Parts
from passgate.tasks.formats.evals.read.raw import RawTest
from passgate.tasks.model.json_values import strictly_equal
from passgate.tasks.model.task import Suite

_INTO_METADATA = ("governance", "category")


def metadata_of(test: Parts, root: Node) -> dict[str, Any]:
    """The metadata of a test with that of its file under it."""
    own = {key: test.value(key) for key in ("metadata", *_INTO_METADATA)}
    return merged(_metadata(root.value), _metadata(own))


def _metadata(said: Mapping[str, Any]) -> dict[str, Any]:
    further = {key: value for key in _INTO_METADATA if (value := said.get(key)) is not None}
    metadata = said.get("metadata")
    return further | metadata if isinstance(metadata, dict) else further


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Two mappings as one: lists are joined without repeating anything, mappings merged, else `over` counts."""
    both = {key: _merged_value(under[key], value) for key, value in over.items() if key in under}
    return {**under, **over, **both}


def _merged_value(under: Any, over: Any) -> Any:
    if isinstance(under, Mapping) and isinstance(over, Mapping):
        return merged(under, over)
    if isinstance(under, list) and isinstance(over, list):
        items: list[Any] = []
        for item in (*under, *over):
            if not any(strictly_equal(item, known) for known in items):
                items.append(item)
        return items
    return over


def tags_of(test: Parts, root: Node, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The tags of a test: those of its file first, of each only one."""
    said = (root.value.get("tags"), test.value("tags"), metadata.get("tags"))
    return tuple(dict.fromkeys(tag for value in said for tag in _tags(value)))


def _tags(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{key}={item}" for key, item in value.items() if isinstance(item, str | int | float))
    elif isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (str(item) for item in value if isinstance(item, str | int | float))


def belongs_to(
    test: Parts, raw: RawTest, metadata: Mapping[str, Any], tags: Sequence[str], sources: Sources
) -> Suite | None:
    """The suite that is named by `suite`, `metadata.suite`, a tag or else the folder of the file; `None` without any.

    A `suite` of any other name is the other tool's.
    """
    folder = suite_of(raw.runtime.file)
    roots = (raw.context.root.value, raw.runtime.root.value)
    names = [test.value("suite"), metadata.get("suite"), *(root.get("suite") for root in roots), *tags]
    named = next((SUITES[name] for name in names if isinstance(name, str) and name in SUITES), None)
    if named is not None and folder is not None and named is not folder and raw.context is raw.runtime:
        sources.refuse(test.node, f"the file lies in the folder of {folder!s}; move it or write `suite: {folder!s}`")
    return named or folder


def other_suite(test: Parts, raw: RawTest) -> str | None:
    """A suite's name that is none of the four."""
    names = (test.value("suite"), raw.context.root.value.get("suite"))
    return next((name for name in names if isinstance(name, str) and name not in SUITES), None)
