"""What is known about a test beside what it is: metadata, tags."""

from collections.abc import Iterator, Mapping
from typing import Any

from passgate.tasks.formats.evals.read.node import Node, Parts
from passgate.tasks.model.json_values import strictly_equal

_INTO_METADATA = ("governance", "category")


def metadata_of(test: Parts, root: Node) -> dict[str, Any]:
    """The metadata of a test with that of its file under it."""
    own = _with_further(test.value("metadata", {}), {key: test.value(key) for key in _INTO_METADATA})
    of_file = root.value.get("metadata")
    further = {key: root.value.get(key) for key in _INTO_METADATA}
    return merged(_with_further(of_file if isinstance(of_file, dict) else {}, further), own)


def _with_further(metadata: Any, further: Mapping[str, Any]) -> dict[str, Any]:
    said = {key: value for key, value in further.items() if value is not None}
    return said | metadata if isinstance(metadata, dict) else said


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
