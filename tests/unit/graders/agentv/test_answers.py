from typing import Any

import pytest

from passgate.tasks.graders.searches import LONGEST_TEXT
from passgate.tasks.model.assertions import Regex
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.messages import TaskMessage
from tests.unit.graders.trials import AGENTV, Graded

ANSWER = (
    '{"vendor":"ACME","total":100.5,"date":"2025-01-15","items":[{"amount":10}],"nested":{"x":"1"},'
    '"american":"01/15/2025","april":"03/04/2025","named":"15-JAN-2025","no":"soon","year":2025}'
)


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ('{"a": 1}', 1.0),
        ("42", 1.0),
        ('{"a": 1, "a": 2}', 1.0),
        ("9" * 5000, 1.0),
        ('```json\n{"a":1}\n```', 0.0),
        ("", 0.0),
        ("NaN", 0.0),
        ("[" * 1_000_000, 0.0),
    ],
)
async def test_an_answer_is_json_whatever_the_schema(answer: str, score: float, graded: Graded) -> None:
    for schema in ({}, {"value": {"type": "array"}}):
        result = await graded({"type": "is_json", **schema}, answer, scoring=AGENTV)
        assert (result.score, result.error) == (score, None)


@pytest.mark.parametrize(
    ("pattern", "flags", "score"),
    [
        ("hello world", "i", 1.0),
        ("hello world", "", 0.0),
        ("(?i)hello world", "", 0.0),
        ("([", "", 0.0),
        ("Hello", "ii", 0.0),
    ],
)
async def test_what_is_no_pattern_is_not_found(pattern: str, flags: str, score: float, graded: Graded) -> None:
    options = Regex.model_construct(type="regex", value=pattern, flags=flags)
    result = await graded(options, "Hello World ([", scoring=AGENTV)
    assert (result.score, result.error) == (score, None)


async def test_a_search_that_is_not_made_is_an_error(graded: Graded) -> None:
    result = await graded({"type": "regex", "value": "a"}, "a" * (LONGEST_TEXT + 1), scoring=AGENTV)
    assert "too long for a regular expression" in result.error


@pytest.fixture
def grade_fields(graded: Graded) -> Graded:
    async def run(task: dict[str, Any], fields: list[dict[str, Any]], answer: str = ANSWER, **options: Any) -> Grade:
        wanted = {"type": "field_accuracy", "fields": fields, **options}
        return await graded(wanted, answer, scoring=AGENTV, **task)

    return run


def day(path: str, *formats: str) -> dict[str, Any]:
    return {"path": path, "match": "date", "formats": formats}


MIXED = [{"path": "vendor"}, {"path": "total", "weight": 3}, {"path": "date", "match": "date"}, {"path": "nested.x"}]
TOTAL = {"path": "total", "match": "numeric_tolerance"}
BOTH = [{"path": "vendor"}, {"path": "total"}]


@pytest.mark.parametrize(
    ("expected", "fields", "options", "score"),
    [
        ({"vendor": "ACME", "total": 100, "date": "2025-01-15", "nested": {"x": 1}}, MIXED, {}, 1 / 3),
        ({"total": 100}, [TOTAL], {}, 0.0),
        ({"total": 100}, [{**TOTAL, "tolerance": 0.5}], {}, 1.0),
        ({"total": 100}, [{**TOTAL, "tolerance": 0.005, "relative": True}], {}, 1.0),
        ({"total": 0}, [{**TOTAL, "tolerance": 101, "relative": True}], {}, 1.0),
        ({"total": "100.5 EUR"}, [TOTAL], {}, 1.0),
        ({"total": True}, [{**TOTAL, "tolerance": 1000}], {}, 0.0),
        ({"nested": {"x": 1}}, [{"path": "nested.x", "match": "numeric_tolerance"}], {}, 1.0),
        ({"items": [{"amount": 10}]}, [{"path": "items[0].amount"}], {}, 1.0),
        ({"items": [1, 2]}, [{"path": "items.length"}], {}, 0.0),
        ({"items": [1]}, [{"path": "items.length"}], {}, 1.0),
        ({"vendor": "ACME", "po": "1"}, [{"path": "vendor"}, {"path": "po"}], {}, 0.5),
        ({"vendor": "ACME", "po": "1"}, [{"path": "vendor"}, {"path": "po", "required": False}], {}, 1.0),
        ({"po": "1"}, [{"path": "po", "required": False}], {}, 0.0),
        ({"vendor": "Nope"}, [{"path": "vendor"}, {"path": "missing"}], {}, 0.5),
        ({"vendor": "ACME", "total": 100}, BOTH, {"aggregation": "all_or_nothing"}, 0.0),
        ({"vendor": "ACME", "total": 100.5}, BOTH, {"aggregation": "all_or_nothing"}, 1.0),
        ({"vendor": "ACME", "total": 100}, BOTH, {"aggregation": "minimum"}, 0.5),
        ({"vendor": "ACME", "total": 1}, [{"path": "vendor"}, {"path": "total", "match": "contains"}], {}, 1.0),
        ({"american": "2025-01-15"}, [day("american", "MM/DD/YYYY", "YYYY-MM-DD")], {}, 1.0),
        ({"april": "2025-04-03"}, [day("april", "DD/MM/YYYY")], {}, 0.0),
        ({"named": "2025-01-15"}, [day("named")], {}, 1.0),
        ({"no": "soon"}, [day("no")], {}, 0.0),
        ({"year": "2025-01-01"}, [day("year")], {}, 1.0),
        ({"vendor": "AC"}, [{"path": "vendor", "match": "contains"}], {}, 1.0),
        ({"vendor": "XX"}, [{"path": "vendor", "match": "contains"}], {}, 0.0),
        ('{"vendor": "ACME"}', [{"path": "vendor"}], {}, 1.0),
        (None, [{"path": "vendor"}], {}, 0.0),
        ("ACME", [{"path": "vendor"}], {}, 0.0),
    ],
)
async def test_a_field_has_the_score_of_agentv(
    expected: Any, fields: Any, options: Any, score: float, grade_fields: Graded
) -> None:
    result = await grade_fields({"expected_output": expected}, fields, **options)
    assert result.score == pytest.approx(score, abs=1e-9)
    assert result.error is None


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("the total is 100", 0.0),
        ('Here:\n```json\n{"vendor":"ACME","total":100}\n```', 1.0),
        ('I {"vendor":"ACME","total":100} am sure', 1.0),
        ('{"vendor":"X","vendor":"ACME","total":100.0}', 1.0),
        ('[{"vendor":"ACME","total":100}]', 1.0),
        ("42", 0.0),
        ("", 0.0),
    ],
)
async def test_fields_of_answers(answer: str, score: float, grade_fields: Graded) -> None:
    result = await grade_fields({"expected_output": {"vendor": "ACME", "total": 100}}, BOTH, answer)
    assert (result.score, result.error) == (score, None)


async def test_the_last_message_of_the_assistant_that_is_json_counts(grade_fields: Graded) -> None:
    contents = ['{"vendor": "X"}', '{"vendor": "ACME"}', "That is all."]
    messages = tuple(TaskMessage(role="assistant", content=content) for content in contents)
    task = {"expected_messages": (*messages, TaskMessage(role="user", content='{"vendor": "Y"}'))}
    assert (await grade_fields(task, [{"path": "vendor"}])).score == 1.0
