"""Whether a tool call is the one that is expected."""

from collections.abc import Mapping
from typing import Any, assert_never

from passgate.tasks.graders.credentials import masked
from passgate.tasks.graders.texts import as_json
from passgate.tasks.model.assertions import ArgsMatch, ExpectedCall
from passgate.tasks.model.json_values import MISSING, at_path, strictly_equal
from passgate.tasks.model.transcript import ToolCall


def same_call(expected: ExpectedCall, usual: ArgsMatch, call: ToolCall) -> bool:
    """Whether tool and arguments are those that are expected; `usual` is how arguments are compared where the
    expectation does not say it. Names are compared as they are.
    """
    if call.tool != expected.tool:
        return False
    if expected.args is None or expected.args == "any":
        return True
    return arguments_match(expected.args, call.arguments, expected.args_match or usual)


def arguments_match(expected: Mapping[str, Any], actual: Mapping[str, Any], how: ArgsMatch) -> bool:
    """Whether the arguments of a call are as expected.

    A list names the fields that are compared, by dots one inside another; those that `expected` does not have are not.
    """
    if not isinstance(how, str):
        wanted = {field: at_path(expected, field) for field in how}
        return all(value is MISSING or strictly_equal(value, at_path(actual, field)) for field, value in wanted.items())
    match how:
        case "exact":
            return strictly_equal(expected, actual)
        case "superset":
            return _holds(actual, expected)
        case "subset":
            return _holds(expected, actual)
        case "ignore":
            return True
    assert_never(how)


def _holds(whole: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    return all(name in whole and strictly_equal(value, whole[name]) for name, value in part.items())


def in_time(expected: ExpectedCall, call: ToolCall) -> bool | None:
    """Whether a call took no longer than it may; `None` when it is not known how long it took."""
    if expected.max_duration_ms is None:
        return True
    return None if call.duration_ms is None else call.duration_ms <= expected.max_duration_ms


def expected_text(expected: ExpectedCall) -> str:
    """An expected call as messages show it: `search({"q": "a"}) within 200 ms`."""
    named = isinstance(expected.args, dict)
    limit = "" if expected.max_duration_ms is None else f" within {expected.max_duration_ms:g} ms"
    return f"{expected.tool}({masked(as_json(expected.args))}){limit}" if named else f"{expected.tool}{limit}"
