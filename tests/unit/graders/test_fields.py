from datetime import date
from typing import Any

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.evidence import json_in
from passgate.tasks.graders.fields import expected_document, field_at, read_date
from passgate.tasks.model.json_values import MISSING
from passgate.tasks.model.messages import ContentBlock, MessageCall, TaskMessage
from tests.unit.graders.trials import Graded, MakeEvidence

ANSWER = (
    '{"vendor": "ACME Corp", "total": 100.5, "date": "01/15/2025", "items": [{"amount": 10}], "count": "12", '
    '"note": null, "tags": ["a", "b"], "paid": true, "x": 1.1}'
)


@pytest.fixture
def compared(graded: Graded) -> Graded:
    """The grade of fields against an expected document."""

    async def run(expected: Any, *fields: dict[str, Any], answer: str = ANSWER, **options: Any) -> Any:
        return await graded({"type": "field_accuracy", "fields": fields, **options}, answer, expected_output=expected)

    return run


def number(path: str, **fields: Any) -> dict[str, Any]:
    return {"path": path, "match": "numeric_tolerance", **fields}


@pytest.mark.parametrize(
    ("field", "expected", "score"),
    [
        *(({"path": "vendor"}, "ACME Corp", 1.0), ({"path": "vendor"}, "acme corp", 0.0)),
        *(({"path": "count"}, 12, 0.0), ({"path": "tags"}, ["a", "b"], 1.0)),
        ({"path": "vendor", "match": "contains"}, "ACME", 1.0),
        ({"path": "vendor", "match": "contains"}, "Acme", 0.0),
        ({"path": "tags", "match": "contains"}, "b", 1.0),
        ({"path": "total", "match": "contains"}, "100", 0.0),
        ({"path": "vendor", "match": "regex"}, r"^ACME\b", 1.0),
        *(({"path": "total", "match": "regex"}, "100", 0.0), (number("total"), 100.5, 1.0)),
        *((number("total"), 100, 0.0), (number("total", tolerance=0.5), 100, 1.0)),
        (number("total", tolerance=0.49), 100, 0.0),
        (number("total", tolerance=0.005, relative=True), 100, 1.0),
        (number("total", tolerance=200, relative=True), 0, 0.0),
        *((number("x", tolerance=0.1), 1, 1.0), (number("count"), 12, 1.0)),
        *((number("vendor", tolerance=1e9), 12, 0.0), (number("paid"), 1, 0.0)),
        ({"path": "date", "match": "date"}, "2025-01-15", 1.0),
        ({"path": "date", "match": "date"}, "2025-01-16", 0.0),
        ({"path": "date", "match": "date", "formats": ("DD/MM/YYYY",)}, "2025-01-15", 0.0),
        ({"path": "total", "match": "date"}, "2025-01-15", 0.0),
    ],
)
async def test_a_field_against_its_value(field: dict[str, Any], expected: Any, score: float, compared: Graded) -> None:
    result = await compared({field["path"]: expected}, field)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)


EXPECTED = {"vendor": "ACME Corp", "total": 1, "po": "7", "items": [{"amount": 10}]}
VENDOR, TOTAL, PO = {"path": "vendor"}, {"path": "total"}, {"path": "po"}


@pytest.mark.parametrize(
    ("aggregation", "fields", "score"),
    [
        ("weighted_average", [VENDOR, TOTAL], 0.5),
        ("weighted_average", [VENDOR | {"weight": 3}, TOTAL], 0.75),
        ("weighted_average", [VENDOR | {"weight": 0}], 0.0),
        ("weighted_average", [VENDOR, PO], 1.0),
        ("weighted_average", [VENDOR, PO | {"required": True}], 0.5),
        ("weighted_average", [PO], 0.0),
        ("weighted_average", [{"path": "items[0].amount"}], 1.0),
        *(("minimum", [VENDOR, TOTAL], 0.0), ("minimum", [VENDOR, PO], 1.0)),
        ("minimum", [VENDOR, PO | {"required": True}], 0.0),
        ("all_or_nothing", [VENDOR | {"weight": 99}, TOTAL], 0.0),
        ("all_or_nothing", [VENDOR, PO], 1.0),
    ],
)
async def test_how_fields_become_a_score(aggregation: str, fields: Any, score: float, compared: Graded) -> None:
    result = await compared(EXPECTED, *fields, aggregation=aggregation)
    assert (result.score, result.error) == (score, None)


async def test_an_answer_without_json_scores_nothing(compared: Graded) -> None:
    result = await compared(EXPECTED, VENDOR, answer="the vendor is ACME Corp")
    assert (result.score, result.error) == (0.0, None)
    assert "the answer contains no JSON object or list" in result.checks[0].message


@pytest.mark.parametrize("expected", [None, "ACME", 42])
async def test_no_expected_document_is_an_error(expected: Any, compared: Graded) -> None:
    assert "nothing to compare" in (await compared(expected, VENDOR)).error


async def test_fields_without_an_expected_value_are_an_error_that_names_them(compared: Graded) -> None:
    fields = [VENDOR, {"path": "vat"}, {"path": "items[1].amount"}]
    result = await compared(EXPECTED, *fields, answer="no JSON")
    assert result.error == "there is nothing to compare: expected_output has no vat, items[1].amount"


@pytest.mark.parametrize(
    ("field", "expected", "said"),
    [
        ({"match": "contains"}, "", 'contains needs a text in expected_output, found ""'),
        ({"match": "contains"}, 4, "contains needs a text"),
        ({"match": "regex"}, "([", "no regular expression as JavaScript knows them"),
        ({"match": "numeric_tolerance"}, "12 or so", "numeric_tolerance needs a number"),
        ({"match": "numeric_tolerance"}, True, "numeric_tolerance needs a number"),
        *(({"match": "date"}, "soon", "date needs a date"), ({"match": "date"}, 2025, "date needs a text")),
        ({"match": "date", "formats": ("x",)}, "2025-01-15", "'x' is not a date format"),
    ],
)
async def test_an_expected_value_that_no_rule_can_use(field: Any, expected: Any, said: str, compared: Graded) -> None:
    assert said in (await compared({"vendor": expected}, VENDOR | field)).error


async def test_a_message_shows_both_values_shortened(compared: Graded) -> None:
    answer = '{"vendor": "' + "x" * 100_000 + '", "total": 1}'
    result = await compared(EXPECTED, VENDOR, TOTAL, PO | {"required": True}, answer=answer)
    messages = [check.message for check in result.checks]
    assert messages[0].startswith('vendor is "xxx')
    assert len(messages[0]) < 500
    assert messages[1:] == ["total is 1, expected 1 (exact)", "po is missing, but required"]


@pytest.mark.parametrize(
    ("answer", "document"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Here:\n```json\n{"a": 1}\n```\nAnything else?', {"a": 1}),
        ('No: ```not json``` but ```\n{"a": 1}\n```', {"a": 1}),
        *(('It is {"a": 1}, I think.', {"a": 1}), ('[{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}])),
    ],
)
def test_the_document_of_an_answer(answer: str, document: Any) -> None:
    assert json_in(answer) == document


@pytest.mark.parametrize(
    "answer", ["", "42", "the total is 100", "}{", '{"a": NaN}', '{"a": 1} {"a": 2}', "{" * 10_000]
)
def test_answers_without_a_document(answer: str) -> None:
    with pytest.raises(ValueError, match="contains no JSON object or list"):
        json_in(answer)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        *(("items[0].amount", 10), ("items[1].amount", None), ("items[2].amount", MISSING), ("0", "zero")),
        ("items[0].amount.more", MISSING),
    ],
)
def test_the_value_at_a_path(path: str, expected: Any) -> None:
    assert field_at({"items": [{"amount": 10}, {"amount": None}], "0": "zero"}, path) is expected


def said(content: Any, role: Any = "assistant", **fields: Any) -> TaskMessage:
    return TaskMessage(role=role, content=content, **fields)


@pytest.mark.parametrize(
    ("expected_output", "messages", "document"),
    [
        *(({"a": 1}, (), {"a": 1}), ('{"a": 1}', (), {"a": 1}), ("no JSON", (), None), (None, (), None)),
        ({"a": 2}, (said('{"a": 1}'),), {"a": 1}),
        (None, (said('{"a": 0}'), said('{"a": 1}'), said("thanks", "user")), {"a": 1}),
        (None, (said('{"a": 1}'), said("", tool_calls=(MessageCall(tool="save"),))), {"a": 1}),
        (None, (said((ContentBlock(type="text", value="so:"), ContentBlock(type="json", value={"a": 1}))),), {"a": 1}),
        (None, (said((ContentBlock(type="text", value='{"a": 1}'),)),), {"a": 1}),
        (None, (said("thanks", "user"),), None),
    ],
)
def test_the_document_that_a_task_expects(
    expected_output: Any, messages: tuple[TaskMessage, ...], document: Any, make_evidence: MakeEvidence
) -> None:
    evidence = make_evidence(expected_output=expected_output, expected_messages=messages)
    assert expected_document(evidence.task) == document


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("2025-01-15", "2025-01-15"), ("2025-01-15T23:30:00-05:00", "2025-01-15")),
        *(("2025-01-15 08:00", "2025-01-15"), ("15-JAN-2025", "2025-01-15"), ("15-september-2025", "2025-09-15")),
        *(("15-Sept-2025", "2025-09-15"), ("01/15/2025", "2025-01-15"), ("15/01/2025", "2025-01-15")),
        *(("03/04/2025", "2025-03-04"), ("2025-02-30", None), ("2025-06", None), ("1-15-2025", "2025-01-15")),
        *(("1/15/25", None), ("01/15/2025 10:30 PM", None), ("January 15, 2025", None), ("15-Foo-2025", None)),
        ("2025-01-15 or so", None),
        ("\u0662\u0660\u0662\u0665-\u0660\u0661-\u0661\u0665", None),
        *(("", None), ("9" * 1000, None)),
    ],
)
def test_dates_where_no_format_is_said(text: str, expected: str | None) -> None:
    assert read_date(text) == (expected and date.fromisoformat(expected))


@pytest.mark.parametrize(
    ("text", "formats", "expected"),
    [
        *(("03/04/2025", ("DD/MM/YYYY",), date(2025, 4, 3)), ("01/15/2025", ("DD/MM/YYYY",), None)),
        ("01/15/2025", ("DD/MM/YYYY", "MM/DD/YYYY"), date(2025, 1, 15)),
        *(("15.1.2025", ("D.M.YYYY",), date(2025, 1, 15)), ("15a1.2025", ("D.M.YYYY",), None)),
        ("January 5, 2025", ("MMMM D, YYYY",), date(2025, 1, 5)),
        ("2025/01/15 08:30:00", ("YYYY/MM/DD HH:mm:ss",), date(2025, 1, 15)),
        ("20250115", ("YYYYMMDD",), date(2025, 1, 15)),
    ],
)
def test_dates_in_the_formats_that_are_said(text: str, formats: tuple[str, ...], expected: date | None) -> None:
    assert read_date(text, formats) == expected


@pytest.mark.parametrize("form", ["Do MMM YYYY", "DD/MM/YY", "MM/YYYY", "DD/DD/YYYY", "x"])
def test_a_format_that_is_none(form: str) -> None:
    with pytest.raises(MeasurementError, match="is not a date format"):
        read_date("15/01/2025", (form,))
