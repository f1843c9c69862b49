"""Fields as AgentV compares them: what it does not know it leaves out, and what has no expected value is right."""

import math
import re
from collections.abc import Callable
from typing import Any, Final

from passgate.tasks.graders.agentv.json_answer import parse_json
from passgate.tasks.graders.answers.dates import read_date_as_agentv
from passgate.tasks.graders.answers.fields import (
    FieldResult,
    aggregated,
    field_at,
    grade_fields,
    in_braces,
    message_content,
    missing_field,
    value_check,
)
from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.texts import shorten
from passgate.tasks.model.assertions import FieldAccuracy, FieldCheck
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.json_values import MISSING, strictly_equal
from passgate.tasks.model.task import EvalTask

_FENCE: Final = re.compile(r"```json\n?|```")
_NUMBER: Final = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
LONGEST_NUMBER: Final = 1000


async def grade_fields_as_agentv(options: FieldAccuracy, evidence: Evidence) -> Grade:
    """The mean of the fields by weight, or all or nothing; `minimum` is the mean too. Without either document 0.

    AgentV drops a grader whose fields all have a rule that it does not know; passgate does not.
    """
    fields = [field for field in options.fields if field.match in _RULES]
    if not fields:
        return await grade_fields(options, evidence)
    answer = evidence.transcript.output
    try:
        document = _parsed(answer)
    except ValueError as error:
        return _nothing(options, f"the answer is not JSON: {error}: {shorten(answer, 200)!r}")
    expected = _expected_document(evidence.task)
    if expected is None:
        return _nothing(options, "expected_output holds no JSON")
    results = [_result(field, _at(document, field.path), _at(expected, field.path)) for field in fields]
    return scored(options, _score(options, results), [result.check for result in results])


def _nothing(options: FieldAccuracy, message: str) -> Grade:
    return scored(options, 0.0, [Check(passed=False, message=message)])


def _score(options: FieldAccuracy, results: list[FieldResult]) -> float:
    if options.aggregation == "all_or_nothing":
        return float(all(result.check.passed for result in results))
    return aggregated("weighted_average", results)


def _result(field: FieldCheck, actual: Any, expected: Any) -> FieldResult:
    if expected is MISSING:
        return FieldResult(Check(passed=True, message=f"{field.path} has no expected value"), field.weight)
    if actual is MISSING:
        return missing_field(field, required=field.required is not False)
    passed = _RULES[field.match](field, actual, expected)
    return FieldResult(value_check(field, actual, expected, passed=passed), field.weight)


def _exact(_field: FieldCheck, actual: Any, expected: Any) -> bool:
    return strictly_equal(actual, expected)


def _numeric(field: FieldCheck, actual: Any, expected: Any) -> bool:
    found, wanted = _as_number(actual), _as_number(expected)
    if found is None or wanted is None:
        return False
    difference = abs(found - wanted)
    return (difference / abs(wanted) if field.relative and wanted else difference) <= field.tolerance


def _date(field: FieldCheck, actual: Any, expected: Any) -> bool:
    found, wanted = (
        read_date_as_agentv(_as_text(actual), field.formats),
        read_date_as_agentv(_as_text(expected), field.formats),
    )
    return found is not None and found == wanted


_RULES: Final[dict[str, Callable[[FieldCheck, Any, Any], bool]]] = {
    "exact": _exact,
    "numeric_tolerance": _numeric,
    "date": _date,
}


def _as_number(value: Any) -> float | None:
    """A finite number, of a text the one that it begins with: JavaScript's `parseFloat`."""
    if isinstance(value, str):
        match = _NUMBER.match(value[:LONGEST_NUMBER])
        value = float(match[1]) if match else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _as_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _at(document: Any, path: str) -> Any:
    """As `field_at`, and `length` of a list, which is a property of it in JavaScript."""
    parent, dot, last = path.rpartition(".")
    if last == "length" and isinstance(owner := field_at(document, parent) if dot else document, list | tuple):
        return len(owner)
    return field_at(document, path)


def _parsed(text: str) -> Any:
    text = _FENCE.sub("", text).strip()
    return parse_json(in_braces(text) or text)


def _expected_document(task: EvalTask) -> Any:
    """What the last message of the assistant holds, a text only if it is JSON."""
    contents = [message_content(message) for message in task.expected_messages if message.role == "assistant"]
    for content in reversed(contents if task.expected_messages else [task.expected_output]):
        if isinstance(content, str):
            try:
                return _parsed(content)
            except ValueError:
                continue
        if content is not None:
            return content
    return None
