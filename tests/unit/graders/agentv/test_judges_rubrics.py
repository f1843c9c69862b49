import json
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.model.assertions import Criterion, Rubrics, ScoreRange
from passgate.tasks.model.task import Scoring

# What the judges of AgentV's probes answer.
CHECKS = json.dumps(
    {
        "checks": [
            {"id": "a", "satisfied": True, "reasoning": "r"},
            {"id": "b", "satisfied": False, "reasoning": "r"},
            {"id": "z", "satisfied": True, "reasoning": "r"},
        ],
        "overall_reasoning": "r",
    }
)
POINTS = json.dumps({"checks": [{"id": "a", "score": 8, "reasoning": "r"}, {"id": "b", "score": 5, "reasoning": "r"}]})
RANGES = tuple(ScoreRange(low=low, high=high, outcome="x") for low, high in ((0, 4), (5, 9), (10, 10)))


def item(name: str, **fields: Any) -> Criterion:
    return Criterion(id=name, outcome=name.upper(), **fields)


def ranged(name: str, **fields: Any) -> Criterion:
    return item(name, score_ranges=RANGES, **fields)


@pytest.mark.parametrize(
    ("criteria", "reply", "score"),
    [
        ([item("a"), item("b")], CHECKS, 0.5),
        ([item("a", weight=9), item("b", weight=1)], CHECKS, 0.9),
        ([item("a", weight=9), item("b", weight=1, required=True)], CHECKS, 0.9),
        ([item("a"), item("c", required=True)], CHECKS, 1),
        ([item("c")], CHECKS, 0),
        ([ranged("a"), ranged("b", weight=3)], POINTS, 0.575),
        ([ranged("a", weight=9), ranged("b", weight=0.1, min_score=0.6)], POINTS, 0.7967032967032968),
        ([ranged("a", required=True)], POINTS, 0.8),
    ],
)
async def test_scores_are_those_of_agentv(
    criteria: list[Criterion], reply: str, score: float, make_evidence: Any, said: Any, recorded_judge: Any
) -> None:
    evidence = make_evidence(transcript=said("Paris"), judge=recorded_judge(reply), scoring=Scoring(compat="agentv"))
    result = await grade(Rubrics(type="rubrics", criteria=tuple(criteria)), evidence)
    assert result.score == pytest.approx(score, abs=1e-9)
    assert result.fatal == ""
    assert len(result.checks) == sum(f'"id": "{criterion.id}"' in reply for criterion in criteria)


async def test_votes_are_those_of_the_judges_that_mark_an_item(
    make_evidence: Any, said: Any, recorded_judge: Any
) -> None:
    judge = recorded_judge('{"checks": []}', CHECKS, CHECKS, votes=3)
    evidence = make_evidence(transcript=said("Paris"), judge=judge, scoring=Scoring(compat="agentv"))
    result = await grade(Rubrics(type="rubrics", criteria=(item("a"), item("b"))), evidence)
    assert (result.score, result.usage.tokens_in) == (0.5, 30)
