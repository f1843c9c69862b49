"""The final answer as AgentV scores it: by JavaScript's rules. Wrong options of a task score 0 and are no error."""

import json
import math
import re
from typing import Any, Final

from passgate.tasks.errors import Raw
from passgate.tasks.graders.answers import fields
from passgate.tasks.graders.answers.assertions import grade_regex, json_check
from passgate.tasks.graders.answers.dates import read_date_as_agentv
from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import FieldAccuracy, FieldCheck, IsJson, Regex
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.javascript_regex import regex_problem
from passgate.tasks.model.json_values import MISSING, strictly_equal
from passgate.tasks.model.quotes import quote, quote_repr, raw
from passgate.tasks.model.task import EvalTask

_FENCE: Final = re.compile(r"```json\n?|```")
_NUMBER: Final = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
LONGEST_NUMBER: Final = 1000
_MATCHES: Final = frozenset({"exact", "numeric_tolerance", "date"})


async def grade_regex_as_agentv(options: Regex, evidence: Evidence) -> RawGrade:
    """As `grade_regex`, and 0 for a regular expression that JavaScript does not take."""
    problem = regex_problem(options.value, options.flags)
    if problem is not None:
        return _nothing(options, raw("/", quote(options.value, 500), f"/: {problem}"))
    return await grade_regex(options, evidence)


async def grade_is_json_as_agentv(options: IsJson, evidence: Evidence) -> RawGrade:
    """1 when the final answer is a JSON document, else 0. A JSON Schema of the options is not looked at."""
    check = json_check(None, evidence.transcript.output, parse_javascript_json)
    return scored(options, float(check.passed), [check])


def parse_javascript_json(text: str) -> Any:
    """The JSON document in a text as JavaScript reads it: numbers are binary fractions, the last of equal names counts.

    Raises `ValueError` when there is none, and when it is nested too deep.
    """

    def refuse(name: str) -> Any:
        # Python's json takes NaN and Infinity, JavaScript's does not.
        raise ValueError(f"{name} is not a JSON value")

    try:
        return json.loads(text, parse_constant=refuse, parse_int=float)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


async def grade_fields_as_agentv(options: FieldAccuracy, evidence: Evidence) -> RawGrade:
    """The mean of the fields by weight, or all or nothing; `minimum` is the mean too. Without either document 0.

    AgentV drops a grader whose fields all have a rule that it does not know; passgate does not.
    """
    known = [field for field in options.fields if field.match in _MATCHES]
    if not known:
        return await fields.grade_fields(options, evidence)
    answer = evidence.transcript.output
    try:
        document = _parsed(answer)
    except ValueError as error:
        return _nothing(options, raw(f"the answer is not JSON: {error}: ", quote_repr(answer, 200)))
    expected = _expected_document(evidence.task)
    if expected is None:
        return _nothing(options, "expected_output holds no JSON")
    results = [_result(field, _at(document, field.path), _at(expected, field.path)) for field in known]
    checks = [result.check for result in results]
    if options.aggregation == "all_or_nothing":
        # `aggregated` gives 0 where every field is left out, AgentV 1.
        return scored(options, float(all(check.passed for check in checks)), checks)
    return scored(options, fields.aggregated("weighted_average", results), checks)


def _nothing(options: FieldAccuracy | Regex, message: Raw) -> RawGrade:
    return scored(options, 0.0, [RawCheck(passed=False, message=message)])


def _result(field: FieldCheck, actual: Any, expected: Any) -> fields.FieldResult:
    if expected is MISSING:
        return fields.FieldResult(RawCheck(passed=True, message=f"{field.path} has no expected value"), field.weight)
    if actual is MISSING:
        # A field that says nothing is required in AgentV and optional in AgentEvals.
        return fields.missing_field(field, required=field.required is not False)
    passed = _is_match(field, actual, expected)
    return fields.FieldResult(fields.value_check(field, actual, expected, passed=passed), field.weight)


def _is_match(field: FieldCheck, actual: Any, expected: Any) -> bool:
    if field.match == "exact":
        return strictly_equal(actual, expected)
    if field.match == "date":
        # All numbers of `parse_javascript_json` are fractions, and JavaScript writes 20240101.0 without `.0`.
        values = (int(it) if isinstance(it, float) and it.is_integer() else it for it in (actual, expected))
        day, wanted_day = (read_date_as_agentv(str(value), field.formats) for value in values)
        return day is not None and day == wanted_day
    found, wanted = _as_number(actual), _as_number(expected)
    if found is None or wanted is None:
        return False
    difference = abs(found - wanted)
    return (difference / abs(wanted) if field.relative and wanted else difference) <= field.tolerance


def _as_number(value: Any) -> float | None:
    """A finite number, of a text the one that it begins with: JavaScript's `parseFloat`."""
    if isinstance(value, str):
        match = _NUMBER.match(value[:LONGEST_NUMBER])
        value = float(match[1]) if match else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _at(document: Any, path: str) -> Any:
    """As `field_at`, and `length` of a list, which is a property of it in JavaScript."""
    parent, dot, last = path.rpartition(".")
    if last == "length" and isinstance(owner := fields.field_at(document, parent) if dot else document, list | tuple):
        return len(owner)
    return fields.field_at(document, path)


def _parsed(text: str) -> Any:
    text = _FENCE.sub("", text).strip()
    return parse_javascript_json(fields.in_braces(text) or text)


def _expected_document(task: EvalTask) -> Any:
    """What the last message of the assistant holds, a text only if it is JSON."""
    contents = [fields.message_content(message) for message in task.expected_messages if message.role == "assistant"]
    for content in reversed(contents if task.expected_messages else [task.expected_output]):
        if isinstance(content, str):
            try:
                return _parsed(content)
            except ValueError:
                continue
        if content is not None:
            return content
    return None
