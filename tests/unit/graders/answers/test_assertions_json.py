from typing import Any

import pytest

from passgate.tasks.model.assertions import IsJson
from tests.unit.graders.trials import Graded

SCHEMA = {"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("answer", "schema", "score"),
    [
        ('{"a": 1}', None, 1.0),
        (" 42\n", None, 1.0),
        ("null", None, 1.0),
        ("", None, 0.0),
        ('```json\n{"a": 1}\n```', None, 0.0),
        ("NaN", None, 0.0),
        ('{"a": Infinity}', None, 0.0),
        ("{'a': 1}", None, 0.0),
        ("[" * 1_000_000, None, 0.0),
        ('{"total": 3}', SCHEMA, 1.0),
        ('{"total": "3"}', SCHEMA, 0.0),
        ("3", SCHEMA, 0.0),
        ("total", SCHEMA, 0.0),
        ('{"total": 3}', {}, 1.0),
    ],
)
async def test_answers(answer: str, schema: dict[str, Any] | None, score: float, graded: Graded) -> None:
    result = await graded(IsJson(type="is_json", value=schema), answer)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)


async def test_a_message_says_what_is_wrong_and_where(graded: Graded) -> None:
    result = await graded(IsJson(type="is_json", value=SCHEMA), '{"total": "3"}')
    assert result.checks[0].message == "$.total: '3' is not of type 'integer'"


async def test_a_schema_that_cannot_be_used_is_an_error(graded: Graded) -> None:
    result = await graded(IsJson(type="is_json", value={"type": "integr"}), "{}")
    assert result.error
