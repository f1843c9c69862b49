import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import FieldAccuracy
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.transcript import Transcript

GradeFields = Callable[..., Any]

ANSWER = (
    '{"vendor": "ACME Corp", "total": 100.5, "date": "01/15/2025", "items": [{"amount": 10}], "count": "12", '
    '"note": null, "tags": ["a", "b"], "paid": true}'
)


@pytest.fixture
def grade_fields(make_evidence: Callable[..., Evidence]) -> GradeFields:
    async def run(expected: Any, *fields: dict[str, Any], answer: str = ANSWER, **options: Any) -> Grade:
        evidence = make_evidence(transcript=Transcript(output=answer))
        task = evidence.task.model_copy(update={"expected_output": expected})
        wanted = FieldAccuracy.model_validate({"type": "field_accuracy", "fields": fields, **options})
        return await grade(wanted, dataclasses.replace(evidence, task=task))

    return run


@pytest.mark.parametrize(
    ("field", "expected", "score"),
    [
        ({"path": "vendor"}, "ACME Corp", 1.0),
        ({"path": "vendor"}, "acme corp", 0.0),
        ({"path": "total"}, 100.5, 1.0),
        ({"path": "total"}, "100.5", 0.0),
        ({"path": "count"}, 12, 0.0),
        ({"path": "paid"}, True, 1.0),
        ({"path": "paid"}, 1, 0.0),
        ({"path": "note"}, None, 1.0),
        ({"path": "tags"}, ["a", "b"], 1.0),
        ({"path": "tags"}, ["b", "a"], 0.0),
        ({"path": "vendor", "match": "contains"}, "ACME", 1.0),
        ({"path": "vendor", "match": "contains"}, "Acme", 0.0),
        ({"path": "tags", "match": "contains"}, "b", 1.0),
        ({"path": "tags", "match": "contains"}, "c", 0.0),
        ({"path": "total", "match": "contains"}, "100", 0.0),
        ({"path": "vendor", "match": "regex"}, r"^ACME\b", 1.0),
        ({"path": "vendor", "match": "regex"}, "^acme", 0.0),
        ({"path": "total", "match": "regex"}, "100", 0.0),
        ({"path": "total", "match": "numeric_tolerance"}, 100.5, 1.0),
        ({"path": "total", "match": "numeric_tolerance"}, 100, 0.0),
        ({"path": "total", "match": "numeric_tolerance", "tolerance": 0.5}, 100, 1.0),
        ({"path": "total", "match": "numeric_tolerance", "tolerance": 0.49}, 100, 0.0),
        ({"path": "total", "match": "numeric_tolerance", "tolerance": 0.005, "relative": True}, 100, 1.0),
        ({"path": "total", "match": "numeric_tolerance", "tolerance": 0.004, "relative": True}, 100, 0.0),
        ({"path": "total", "match": "numeric_tolerance", "tolerance": 200, "relative": True}, 0, 0.0),
        ({"path": "count", "match": "numeric_tolerance"}, 12, 1.0),
        ({"path": "vendor", "match": "numeric_tolerance", "tolerance": 1e9}, 12, 0.0),
        ({"path": "paid", "match": "numeric_tolerance"}, 1, 0.0),
        ({"path": "note", "match": "numeric_tolerance"}, 0, 0.0),
        ({"path": "date", "match": "date"}, "2025-01-15", 1.0),
        ({"path": "date", "match": "date"}, "2025-01-16", 0.0),
        ({"path": "date", "match": "date", "formats": ("DD/MM/YYYY",)}, "2025-01-15", 0.0),
        ({"path": "total", "match": "date"}, "2025-01-15", 0.0),
    ],
)
async def test_a_field_against_its_value(
    field: dict[str, Any], expected: Any, score: float, grade_fields: GradeFields
) -> None:
    result = await grade_fields({field["path"]: expected}, field)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)


async def test_one_point_one_is_a_tenth_from_one(grade_fields: GradeFields) -> None:
    field = {"path": "x", "match": "numeric_tolerance", "tolerance": 0.1}
    assert (await grade_fields({"x": 1}, field, answer='{"x": 1.1}')).score == 1.0


async def test_a_path_into_a_list(grade_fields: GradeFields) -> None:
    assert (await grade_fields({"items": [{"amount": 10}]}, {"path": "items[0].amount"})).score == 1.0


EXPECTED = {"vendor": "ACME Corp", "total": 1, "po": "7"}


@pytest.mark.parametrize(
    ("aggregation", "fields", "score"),
    [
        ("weighted_average", [{"path": "vendor"}, {"path": "total"}], 0.5),
        ("weighted_average", [{"path": "vendor", "weight": 3}, {"path": "total"}], 0.75),
        ("weighted_average", [{"path": "vendor", "weight": 0}, {"path": "total"}], 0.0),
        ("weighted_average", [{"path": "vendor", "weight": 0}], 0.0),
        ("weighted_average", [{"path": "vendor"}, {"path": "po"}], 1.0),
        ("weighted_average", [{"path": "vendor"}, {"path": "po", "required": False}], 1.0),
        ("weighted_average", [{"path": "vendor"}, {"path": "po", "required": True}], 0.5),
        ("weighted_average", [{"path": "po"}], 0.0),
        ("minimum", [{"path": "vendor"}, {"path": "total"}], 0.0),
        ("minimum", [{"path": "vendor"}, {"path": "po"}], 1.0),
        ("minimum", [{"path": "vendor"}, {"path": "po", "required": True}], 0.0),
        ("minimum", [{"path": "po"}], 0.0),
        ("all_or_nothing", [{"path": "vendor", "weight": 99}, {"path": "total"}], 0.0),
        ("all_or_nothing", [{"path": "vendor"}, {"path": "po"}], 1.0),
        ("all_or_nothing", [{"path": "po"}], 0.0),
    ],
)
async def test_how_fields_become_a_score(
    aggregation: str, fields: list[dict[str, Any]], score: float, grade_fields: GradeFields
) -> None:
    result = await grade_fields(EXPECTED, *fields, aggregation=aggregation)
    assert (result.score, result.error) == (score, None)


async def test_an_answer_without_json_scores_nothing(grade_fields: GradeFields) -> None:
    result = await grade_fields(EXPECTED, {"path": "vendor"}, answer="the vendor is ACME Corp")
    assert (result.score, result.error) == (0.0, None)
    assert "the answer contains no JSON object or list" in result.checks[0].message


@pytest.mark.parametrize("expected", [None, "ACME", 42])
async def test_no_expected_document_is_an_error(expected: Any, grade_fields: GradeFields) -> None:
    result = await grade_fields(expected, {"path": "vendor"})
    assert (result.score, result.passed) == (None, False)
    assert "nothing to compare" in result.error


async def test_fields_without_an_expected_value_are_an_error_that_names_them(grade_fields: GradeFields) -> None:
    fields = [{"path": "vendor"}, {"path": "vat"}, {"path": "items[0].amount"}]
    result = await grade_fields(EXPECTED, *fields, answer="no JSON")
    assert result.score is None
    assert result.error == "there is nothing to compare: expected_output has no vat, items[0].amount"


@pytest.mark.parametrize(
    ("field", "expected", "said"),
    [
        ({"match": "contains"}, "", 'contains needs a text in expected_output, found ""'),
        ({"match": "contains"}, 4, "contains needs a text"),
        ({"match": "regex"}, "([", "no regular expression as JavaScript knows them"),
        ({"match": "numeric_tolerance"}, "12 or so", "numeric_tolerance needs a number"),
        ({"match": "numeric_tolerance"}, True, "numeric_tolerance needs a number"),
        ({"match": "date"}, "soon", "date needs a date"),
        ({"match": "date"}, 2025, "date needs a text"),
        ({"match": "date", "formats": ("x",)}, "2025-01-15", "'x' is not a date format"),
    ],
)
async def test_an_expected_value_that_its_rule_cannot_use_is_an_error(
    field: dict[str, Any], expected: Any, said: str, grade_fields: GradeFields
) -> None:
    result = await grade_fields({"vendor": expected}, {"path": "vendor", **field})
    assert (result.score, result.passed) == (None, False)
    assert said in result.error


async def test_a_message_shows_both_values_shortened(grade_fields: GradeFields) -> None:
    answer = '{"vendor": "' + "x" * 100_000 + '", "total": 1}'
    fields = [{"path": "vendor"}, {"path": "total"}, {"path": "po", "required": True}]
    messages = [check.message for check in (await grade_fields(EXPECTED, *fields, answer=answer)).checks]
    assert messages[0].startswith('vendor is "xxx')
    assert len(messages[0]) < 500
    assert messages[1:] == ["total is 1, expected 1 (exact)", "po is missing, but required"]
