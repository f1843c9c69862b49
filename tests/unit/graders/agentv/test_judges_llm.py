from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.task import Scoring


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"pass": true, "score": 0.9, "reason": "ok"}', 0.9),
        ('{"score": 0.9, "reason": "ok"}', 0.9),
        ('{"pass": true, "score": 0.1, "reason": "x"}', 0.1),
        ('{"pass": false, "score": 0.95, "reason": "x"}', 0.95),
        ('{"score": 0.3, "assertions": [{"text": "bad", "passed": "no"}, "odd"]}', 0.3),
        ('Here it is: ```json\n{"score": 0.7}\n``` as you asked', 0.7),
        ('{"assertions": [{"text": "ok", "passed": true}]}', None),
        ("I think it is fine", None),
        ("} {", None),
        ('[{"score": 1}, {"score": 0}]', None),
    ],
)
async def test_the_score_is_the_judges_own(
    reply: str, score: float | None, make_evidence: Any, said: Any, recorded_judge: Any
) -> None:
    evidence = make_evidence(
        transcript=said("Paris"), judge=recorded_judge(reply), criteria="c", scoring=Scoring(compat="agentv")
    )
    result = await grade(LlmGrader(type="llm_grader"), evidence)
    assert (result.score, result.error is None) == (score, score is not None)


async def test_a_negated_grader_has_the_rest_of_the_score(make_evidence: Any, said: Any, recorded_judge: Any) -> None:
    evidence = make_evidence(
        transcript=said("Paris"), judge=recorded_judge('{"score": 0.9}'), criteria="c", scoring=Scoring(compat="agentv")
    )
    result = await grade(LlmGrader(type="llm_grader", negate=True), evidence)
    assert result.score == pytest.approx(0.1, abs=1e-9)


async def test_the_judge_is_passgates_whatever_the_file_calls_it(
    make_evidence: Any, said: Any, recorded_judge: Any
) -> None:
    evidence = make_evidence(
        transcript=said("Paris"), judge=recorded_judge('{"score": 0.9}'), criteria="c", scoring=Scoring(compat="agentv")
    )
    assert (await grade(LlmGrader(type="llm_grader", target="nobody"), evidence)).score == 0.9
