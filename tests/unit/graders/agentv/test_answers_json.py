from collections.abc import Callable

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import IsJson
from passgate.tasks.model.transcript import Transcript


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
async def test_answers(answer: str, score: float, agentv_evidence: Callable[..., Evidence]) -> None:
    result = await grade(IsJson(type="is_json"), agentv_evidence(transcript=Transcript(output=answer)))
    assert (result.score, result.error) == (score, None)


async def test_a_schema_is_not_looked_at(agentv_evidence: Callable[..., Evidence]) -> None:
    evidence = agentv_evidence(transcript=Transcript(output="{}"))
    assert (await grade(IsJson(type="is_json", value={"type": "integer"}), evidence)).score == 1.0
