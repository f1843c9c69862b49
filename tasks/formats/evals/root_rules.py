"""The rules of eval files on names, versions, descriptions and time-outs, for the schemas and for the loader."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from jsonschema import Draft202012Validator

from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.schema_check import differences

_NAME: Final = r"^[a-z](-?[a-z0-9])*$"
"""Lower case, digits and single hyphens, from a letter to a letter or digit. One letter is enough: one page of
the formats says from 1 character on, another from 2.
"""
ROOT_RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "name": {"type": "string", "pattern": _NAME, "maxLength": 64},
    "version": {"type": ["string", "number"], "pattern": r"^[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.+-]+)?$"},
    "description": {"type": "string", "maxLength": 2048},
}
"""What the keys of a whole file hold."""
TIMEOUT_RULE: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 1, "maximum": 3600}
"""The `timeout_seconds` of `execution`."""
_MEANINGS: Final = {
    "name": "1 to 64 lower-case letters, digits and single hyphens, as in code-review",
    "version": "a version, as in 1.0",
}


def check_root(root: Node, complaints: Complaints) -> None:
    """What is wrong with the name, the version and the description of a file."""
    for key in ROOT_RULES:
        _check(root, key, complaints)


def check_execution(execution: Node, complaints: Complaints) -> None:
    """What is wrong with the time-out of an `execution`."""
    _check(execution, "timeout_seconds", complaints)


def is_timeout(value: Any) -> bool:
    """Whether an `execution` can say it as its time-out."""
    return bool(_validator("timeout_seconds").is_valid(value))


def _check(container: Node, key: str, complaints: Complaints) -> None:
    if key not in container.value:
        return
    node = container.child(key)
    for difference in differences(node.value, _validator(key))[:1]:
        meaning = _MEANINGS.get(key)
        complaints.problems.append(node.problem(f"expected {meaning}" if meaning else difference.message))


@cache
def _validator(key: str) -> Draft202012Validator:
    return Draft202012Validator({**ROOT_RULES, "timeout_seconds": TIMEOUT_RULE}[key])
