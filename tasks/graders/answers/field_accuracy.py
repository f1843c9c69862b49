"""The fields of the answer's JSON document against those of `expected_output`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers.field_documents import answer_document, expected_document, field_at
from passgate.tasks.graders.answers.field_matches import field_matches
from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.texts import as_json, shorten
from passgate.tasks.model.assertions import FieldAccuracy, FieldCheck
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.json_values import MISSING


class FieldResult(NamedTuple):
    """What came of one field. One that is left out counts in no aggregation."""

    check: Check
    weight: float
    left_out: bool = False


async def grade_fields(options: FieldAccuracy, evidence: Evidence) -> Grade:
    """The fields' results as the aggregation has it: by weight, the least of them, or all or nothing.

    A field that the answer lacks is left out of them unless it is required; with none left the score is 0, as it is
    for an answer without JSON. Raises `MeasurementError` when a field has no expected value, or one that its rule
    cannot be used with: nothing to compare is not a pass.
    """
    expected = _expected_values(options, evidence)
    try:
        document = answer_document(evidence.transcript.output)
    except ValueError as error:
        message = f"{error}: {shorten(evidence.transcript.output, 200)!r}"
        return scored(options, 0.0, [Check(passed=False, message=message)])
    results = [
        await _result(field, field_at(document, field.path), value)
        for field, value in zip(options.fields, expected, strict=True)
    ]
    return scored(options, aggregated(options.aggregation, results), [result.check for result in results])


def aggregated(aggregation: str, results: Sequence[FieldResult]) -> float:
    """The score, from 0 to 1. `weighted_average` is Σ weight·result / Σ weight, 0 where no weight is left."""
    counted = [result for result in results if not result.left_out]
    if aggregation == "weighted_average":
        weights = sum(result.weight for result in counted)
        return sum(result.weight for result in counted if result.check.passed) / weights if weights else 0.0
    # A field is right or wrong, so the least of them is 1 when all are right.
    return float(bool(counted) and all(result.check.passed for result in counted))


def _expected_values(options: FieldAccuracy, evidence: Evidence) -> list[Any]:
    document = expected_document(evidence.task)
    if document is None:
        raise MeasurementError("there is nothing to compare: expected_output contains no JSON object or list")
    values = [field_at(document, field.path) for field in options.fields]
    missing = [field.path for field, value in zip(options.fields, values, strict=True) if value is MISSING]
    if missing:
        raise MeasurementError(f"there is nothing to compare: expected_output has no {', '.join(missing)}")
    return values


async def _result(field: FieldCheck, actual: Any, expected: Any) -> FieldResult:
    if actual is MISSING:
        return missing_field(field, required=bool(field.required))
    passed = await field_matches(field, actual, expected)
    return FieldResult(value_check(field, actual, expected, passed=passed), field.weight)


def missing_field(field: FieldCheck, *, required: bool) -> FieldResult:
    """What comes of a field that the answer lacks."""
    message = f"{field.path} is missing{', but required' if required else '; it is optional and does not count'}"
    return FieldResult(Check(passed=not required, message=message), field.weight, left_out=not required)


def value_check(field: FieldCheck, actual: Any, expected: Any, *, passed: bool) -> Check:
    """The check of a field with both of its values."""
    rule = field.match.replace("_", " ")
    shown = f"{field.path} is {as_json(actual, 200)}, expected {as_json(expected, 200)} ({rule})"
    return Check(passed=passed, message=shown)
