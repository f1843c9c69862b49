"""Programs, judges, composites and turns as AgentV scores them, beside the scores of passgate."""

from typing import Any

import pytest

from passgate.tasks.graders.agentv.judges import read_aggregate_as_agentv, read_code_reply_as_agentv
from passgate.tasks.model.transcript import Message, Transcript
from tests.unit.graders.options import A, B, C, by, composite, says
from tests.unit.graders.trials import Files, Graded, RecordedJudge, said

PARIS = said("Paris is the capital of France.")


@pytest.mark.parametrize(
    ("stdout", "stderr", "exit_code", "score"),
    [
        ('{"score": 0.75, "assertions": [{"text": "x", "passed": true}], "details": {"k": 1}}', "", 0, 0.75),
        ('{"assertions": [{"text": "a", "passed": true}, {"text": "b", "passed": false}]}', "", 0, 0.5),
        ('{"score": 0.6, "hits": ["h1"], "misses": ["m1"], "reasoning": "r"}', "", 0, 0.6),
        ('{"score": 1.7}', "", 0, 1),
        ('{"score": -3}', "", 0, 0),
        (f'{{"score": {10**400}}}', "", 0, 1),
        ('{"score": "0.9"}', "", 0, 0),
        ('{"score": true}', "", 0, 0),
        ("{}", "", 0, 0),
        ("[1,2]", "", 0, 1),
        ("0.4", "", 0, 1),
        ("looks fine", "", 0, 1),
        ("", "", 0, 1),
        ("not fine", "", 1, 0),
        ('{"score": 1.0}', "", 1, 0),
        ("", "boom", 2, 0),
        ('{"score": 1.0}', "warn", 0, 1),
        ('{"score": 0.9', "", 0, 1),
        ('log line\n{"score": 0.9}', "", 0, 1),
        ('{"pass": false, "score": 1.0, "reason": "no"}', "", 0, 1),
    ],
)
def test_what_a_program_prints(stdout: str, stderr: str, exit_code: int, score: float) -> None:
    read = read_code_reply_as_agentv(stdout, stderr, exit_code)
    assert read.score == pytest.approx(score)
    assert all(check.message for check in read.checks)


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
def test_a_reply_without_a_score_is_nothing_for_a_composite(stdout: str, exit_code: int, score: float) -> None:
    assert read_aggregate_as_agentv(stdout, "", exit_code).score == score


HALF = composite(A, B, **by("threshold", threshold=0.5)) | {"name": "in"}


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
        ([HALF, C], by("weighted_average", weights={"in": 1, "c": 1}), 0.75, 0.75),
        ([HALF, C], by("threshold", threshold=1), 1, 1),
        ([composite(A, B, min_score=0.5)], by("threshold", threshold=1), 0, 1),
    ],
)
async def test_the_score_of_members(members: Any, fields: Any, theirs: float, ours: float, scores: Graded) -> None:
    found = await scores(composite(*members, **fields), PARIS)
    assert found == pytest.approx((theirs, ours), abs=1e-9)


async def test_a_required_member_does_not_bind_there(compare: Graded) -> None:
    weights = by("weighted_average", weights={"a": 9, "b": 1})
    theirs, ours = await compare(composite(A, B | {"required": True}, **weights), PARIS)
    assert (theirs.score, theirs.passed, theirs.fatal) == (0.9, True, "")
    assert (ours.score, ours.passed) == (0.9, False)
    assert ours.fatal


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
    members: Any, threshold: float, score: float, theirs: bool, ours: bool, compare: Graded
) -> None:
    found = await compare(composite(*members, threshold=threshold), PARIS)
    assert [answer.score for answer in found] == pytest.approx([score, score], abs=1e-9)
    assert [answer.passed for answer in found] == [theirs, ours]


async def test_a_program_gives_the_score(compare: Graded, provide: Files) -> None:
    provide({"aggregate.py": 'print(\'{"score": 0.25, "verdict": "pass", "assertions": [{"text": "x"}]}\')'})
    theirs, ours = await compare(composite(A, B, **by("code_grader", command=["python3", "aggregate.py"])), PARIS)
    assert (theirs.score, theirs.passed) == (0.25, False)
    assert ours.error is not None


async def test_the_judge_gives_the_score_whatever_else_it_says(scores: Graded) -> None:
    options = composite(A, B, **by("llm_grader", prompt="{{EVALUATOR_RESULTS_JSON}}"))
    assert await scores(options, PARIS, judge=RecordedJudge('{"score": 0.9, "pass": false}')) == (0.9, 0)


def talk(turns: int) -> Transcript:
    """A conversation with an agent that says the same every time."""
    said = [
        (Message(role="user", content=f"t{number + 1}"), Message(role="assistant", content="Hello Alice! Paris."))
        for number in range(turns)
    ]
    return Transcript(messages=sum(said, ()), output="Hello Alice! Paris.")


WEIGHED = {"assertions": [*says("Alice", weight=3)["assertions"], *says("Rome")["assertions"]]}


@pytest.mark.parametrize(
    ("turns", "fields", "theirs", "ours"),
    [
        ([says("Alice"), says("Rome"), {}], {}, 2 / 3, 1 / 2),
        ([says("Alice"), says("Rome")], {"aggregation": "min"}, 0, 0),
        ([says("Alice"), says("Rome")], {"aggregation": "max"}, 1, 1),
        ([says("Rome"), says("Alice")], {"on_turn_failure": "stop"}, 0, 0),
        ([says("Rome"), {}, {}], {"on_turn_failure": "stop"}, 0, 0),
        ([says("Alice")], {"conversation": says("user: t1")["assertions"]}, 1, 1),
        ([{}], {"conversation": says("user: t2")["assertions"]}, 1 / 2, 0),
        ([WEIGHED], {}, 3 / 4, 3 / 4),
        ([{}, {}], {}, 1, None),
    ],
)
async def test_the_score_of_turns(turns: Any, fields: Any, theirs: float, ours: float | None, scores: Graded) -> None:
    found = await scores({"type": "turns", "turns": turns, **fields}, talk(len(turns)))
    assert found == pytest.approx((theirs, ours), abs=1e-9)


async def test_what_is_required_in_a_turn_is_that_turns_matter_there(compare: Graded) -> None:
    mixed = {"assertions": [*says("Alice")["assertions"], *says("Rome", required=True)["assertions"]]}
    theirs, ours = await compare({"type": "turns", "turns": [says("Alice"), mixed]}, talk(2))
    assert (theirs.score, theirs.fatal) == (1 / 2, "")
    assert ours.fatal
