from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import FieldAccuracy
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.transcript import Transcript

GradeFields = Callable[..., Any]

ANSWER = '{"vendor":"ACME","total":100.5,"date":"2025-01-15","items":[{"amount":10}],"nested":{"x":"1"}}'


@pytest.fixture
def grade_fields(agentv_evidence: Callable[..., Evidence]) -> GradeFields:
    async def run(task: dict[str, Any], fields: list[dict[str, Any]], answer: str = ANSWER, **options: Any) -> Grade:
        evidence = agentv_evidence(transcript=Transcript(output=answer), task=task)
        wanted = FieldAccuracy.model_validate({"type": "field_accuracy", "fields": fields, **options})
        return await grade(wanted, evidence)

    return run


MIXED = [
    {"path": "vendor"},
    {"path": "total", "weight": 3},
    {"path": "date", "match": "date"},
    {"path": "nested.x"},
]
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
        ('{"vendor": "ACME"}', [{"path": "vendor"}], {}, 1.0),
        (None, [{"path": "vendor"}], {}, 0.0),
        ("ACME", [{"path": "vendor"}], {}, 0.0),
    ],
)
async def test_scores(
    expected: Any, fields: list[dict[str, Any]], options: dict[str, Any], score: float, grade_fields: GradeFields
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
async def test_answers(answer: str, score: float, grade_fields: GradeFields) -> None:
    result = await grade_fields({"expected_output": {"vendor": "ACME", "total": 100}}, BOTH, answer)
    assert (result.score, result.error) == (score, None)


@pytest.mark.parametrize(
    ("answer", "expected", "formats", "score"),
    [
        ("01/15/2025", "2025-01-15", ["MM/DD/YYYY", "YYYY-MM-DD"], 1.0),
        ("03/04/2025", "2025-04-03", ["DD/MM/YYYY"], 0.0),
        ("15-JAN-2025", "2025-01-15", [], 1.0),
        ("soon", "soon", [], 0.0),
        (2025, "2025-01-01", [], 1.0),
    ],
)
async def test_dates(answer: Any, expected: str, formats: list[str], score: float, grade_fields: GradeFields) -> None:
    field = {"path": "date", "match": "date", "formats": formats}
    text = f'{{"date": {answer if isinstance(answer, int) else chr(34) + answer + chr(34)}}}'
    assert (await grade_fields({"expected_output": {"date": expected}}, [field], text)).score == score


async def test_the_last_message_of_the_assistant_that_is_json_counts(grade_fields: GradeFields) -> None:
    contents = ['{"vendor": "X"}', '{"vendor": "ACME"}', "That is all."]
    messages = tuple(TaskMessage(role="assistant", content=content) for content in contents)
    task = {"expected_messages": (*messages, TaskMessage(role="user", content='{"vendor": "Y"}'))}
    assert (await grade_fields(task, [{"path": "vendor"}])).score == 1.0


async def test_a_grader_that_agentv_drops_for_its_rules_is_passgates_own(grade_fields: GradeFields) -> None:
    field = {"path": "vendor", "match": "contains"}
    assert (await grade_fields({"expected_output": {"vendor": "AC"}}, [field])).score == 1.0
    assert (await grade_fields({"expected_output": {"vendor": "XX"}}, [field])).score == 0.0
