"""Patterns of tool calls: names and arguments as they are written in a task."""

import operator
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from passgate.tasks.model.graders import ToolPattern
from passgate.tasks.model.json_values import MISSING, at_path, strictly_equal
from passgate.tasks.model.transcript import ToolCall

_COMPARISON: Final = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*")
_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


def call_matches(pattern: str | ToolPattern, call: ToolCall) -> bool:
    """Whether a call is meant by a pattern; a text is a pattern of the tool's name alone."""
    if isinstance(pattern, str):
        return fnmatchcase(call.tool, pattern)
    return fnmatchcase(call.tool, pattern.tool) and all(
        value_matches(expected, argument(call.arguments, name)) for name, expected in pattern.params.items()
    )


def argument(arguments: Mapping[str, Any], name: str) -> Any:
    """The argument of this name; else, by dots, one inside another; `MISSING` when there is neither."""
    return arguments[name] if name in arguments else at_path(arguments, name)


def value_matches(expected: Any, actual: Any) -> bool:
    """Whether an argument is as a pattern wants it; an argument that is not there never is.

    A text such as `<=100` compares numbers, and a text that reads as a number counts as one, because tools
    take it as one. Any other text is a pattern against the argument as text. Anything else must be equal.
    """
    if actual is MISSING:
        return False
    if not isinstance(expected, str):
        return strictly_equal(expected, actual)
    comparison = _COMPARISON.fullmatch(expected)
    if comparison is None:
        return fnmatchcase(str(actual), expected)
    if isinstance(actual, bool) or not isinstance(actual, int | float | str):
        return False
    try:
        number = float(actual) if isinstance(actual, str) else actual
    except ValueError:
        return False
    return _OPERATORS[comparison[1]](number, float(comparison[2]))
