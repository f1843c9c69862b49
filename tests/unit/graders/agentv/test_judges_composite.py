"""Composites and assert-sets as AgentV scores them, and what passgate says where it does not ask for that."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.agentv.judges import read_aggregate_as_agentv
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Composite
from passgate.tasks.model.task import Scoring
from passgate.tasks.model.transcript import Message, Transcript

MakeEvidence = Callable[..., Evidence]
Compare = Callable[..., Any]
Provide = Callable[[dict[str, str]], None]
ANSWER = "Paris is the capital of France."
PARIS = Transcript(messages=(Message(role="assistant", content=ANSWER),), output=ANSWER)
A = {"name": "a", "type": "contains", "value": "Paris"}
B = {"name": "b", "type": "contains", "value": "Rome"}
C = {"name": "c", "type": "contains", "value": "France"}


@pytest.fixture
def compare(make_evidence: MakeEvidence) -> Compare:
    """AgentV's grade and passgate's own."""

    async def both(*members: dict[str, Any], judge: Any = None, **fields: Any) -> tuple[Grade, Grade]:
        options = Composite.model_validate({"type": "composite", "name": "g", "assertions": members, **fields})
        theirs = make_evidence(transcript=PARIS, judge=judge, scoring=Scoring(compat="agentv"))
        return await grade(options, theirs), await grade(options, make_evidence(transcript=PARIS, judge=judge))

    return both


def by(kind: str, **fields: Any) -> dict[str, Any]:
    return {"aggregator": {"type": kind, **fields}}


@pytest.mark.parametrize(
    ("members", "fields", "theirs", "ours"),
    [
        ([A, B], {}, 0.5, 0.5),
        ([A, B], by("weighted_average", weights={"a": 0.9, "b": 0.1}), 0.9, 0.9),
        ([A | {"weight": 9}, B], {}, 0.5, 0.9),
        ([A, B | {"negate": True}], {}, 0.5, 1),
        ([A, B], by("threshold", threshold=0.5), 0.5, 0.5),
        ([A, B], by("minimum"), 0, 0),
        ([A, B], by("maximum"), 1, 1),
        ([A, B], by("safety_gate", required=["b"]), 0, 0),
        ([A, B], by("all_or_nothing", threshold=0.7), 0, 0),
        ([A, B | {"negate": True}], by("minimum"), 1, 1),
    ],
)
async def test_the_score_of_members(
    members: Any, fields: dict[str, Any], theirs: float, ours: float, compare: Compare
) -> None:
    found = await compare(*members, **fields)
    assert [answer.score for answer in found] == pytest.approx([theirs, ours], abs=1e-9)


async def test_a_required_member_does_not_bind_there(compare: Compare) -> None:
    weights = by("weighted_average", weights={"a": 9, "b": 1})
    theirs, ours = await compare(A, B | {"required": True}, **weights)
    assert (theirs.score, theirs.passed, theirs.fatal) == (0.9, True, "")
    assert (ours.score, ours.passed) == (0.9, False)
    assert ours.fatal


async def test_a_nested_composite_passes_by_its_own_threshold(compare: Compare) -> None:
    inner = {"type": "composite", "name": "in", "assertions": [A, B], **by("threshold", threshold=0.5)}
    found = await compare(inner, C, **by("weighted_average", weights={"in": 1, "c": 1}))
    assert [answer.score for answer in found] == [0.75, 0.75]
    counted = await compare(inner, C, **by("threshold", threshold=1))
    assert [answer.score for answer in counted] == [1, 1]


async def test_a_members_min_score_is_nothing_there(compare: Compare) -> None:
    low = {"type": "composite", "name": "low", "assertions": [A, B], "min_score": 0.5}
    theirs, ours = await compare(low, **by("threshold", threshold=1))
    assert (theirs.score, ours.score) == (0, 1)


@pytest.mark.parametrize(
    ("members", "threshold", "score", "theirs", "ours"),
    [
        ([A | {"weight": 9}, B], 1, 0.9, False, False),
        ([A | {"weight": 9}, B], 0.5, 0.9, True, True),
        ([A | {"weight": 9}, B | {"required": True}], 0.5, 0.9, True, False),
        ([A, B | {"negate": True}], 1, 1, True, True),
    ],
)
async def test_an_assert_set(
    members: Any, threshold: float, score: float, theirs: bool, ours: bool, compare: Compare
) -> None:
    found = await compare(*members, threshold=threshold)
    assert [answer.score for answer in found] == pytest.approx([score, score], abs=1e-9)
    assert [answer.passed for answer in found] == [theirs, ours]


async def test_a_program_gives_the_score(compare: Compare, provide: Provide) -> None:
    provide({"aggregate.py": 'print(\'{"score": 0.25, "verdict": "pass", "assertions": [{"text": "x"}]}\')'})
    theirs, ours = await compare(A, B, **by("code_grader", command=["python3", "aggregate.py"]))
    assert (theirs.score, theirs.passed) == (0.25, False)
    assert ours.error is not None


@pytest.mark.parametrize(
    ("stdout", "exit_code", "score"),
    [
        ('{"score": 0.5}', 0, 0.5),
        ('{"score": 7}', 0, 1),
        ('{"score": 0.5}', 1, 0),
        ('{"score": "1"}', 0, 0),
        ('{"score": true}', 0, 0),
        ('{"assertions": [{"text": "x", "passed": true}]}', 0, 0),
        ("fine", 0, 0),
        ("[1]", 0, 0),
        ("", 0, 0),
    ],
)
def test_a_programs_reply_without_a_score_is_nothing(stdout: str, exit_code: int, score: float) -> None:
    assert read_aggregate_as_agentv(stdout, "", exit_code).score == score


async def test_the_judge_gives_the_score_whatever_else_it_says(
    compare: Compare, recorded_judge: Callable[..., Any]
) -> None:
    judge = recorded_judge(json.dumps({"score": 0.9, "pass": False}))
    found = await compare(A, B, judge=judge, **by("llm_grader", prompt="{{EVALUATOR_RESULTS_JSON}}"))
    assert [answer.score for answer in found] == [0.9, 0]
