"""Several graders with one score: the formulas, what binds whatever they say, and what was not measured."""

import json
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.grade import JudgeReply, JudgeRequest
from passgate.tasks.model.transcript import Message, ToolCall, Usage
from tests.unit.graders.options import A, B, C, by, composite
from tests.unit.graders.trials import Files, Graded, RecordedJudge, said

PARIS = said("Paris is the capital of France.")
NO_JUDGE = {"name": "judge", "type": "llm_grader", "prompt": "Is it true?"}
"""Has an error."""
NO_ROME = "the answer does not contain 'Rome', but must"
POLICY = {"name": "policy", "type": "policy_check", "deny_tools": ["drop_*"]}
TEN_WORDS = ["Paris", "capital", "France", "is", "the", "of", "P", "a", "r", "Rome"]
WORDS = {"name": "words", "type": "output_check", "contains": TEN_WORDS}


def share(met: int, of: int, **fields: Any) -> dict[str, Any]:
    """A member whose score is the share of expected tool calls that were made; there are none."""
    made = {f"not_{number}": 0 for number in range(met)}
    return {"type": "tool_trajectory", "minimums": made | {f"no_{n}": 1 for n in range(of - met)}, **fields}


@pytest.fixture
def combined(graded: Graded) -> Graded:
    """The grade of a composite of these members."""

    async def ask(*members: dict[str, Any], judge: Any = None, transcript: Any = PARIS, **fields: Any) -> Any:
        return await graded(composite(*members, **fields), transcript, judge=judge)

    return ask


HALF = composite(A, B, name="inner", **by("threshold", threshold=0.5))


@pytest.mark.parametrize(
    ("members", "fields", "score"),
    [
        *(([A, B], {}, 1 / 2), ([A | {"weight": 9}, B], {}, 9 / 10)),
        ([A | {"weight": 0}, B], by("weighted_average", weights={"a": 3}), 3 / 4),
        *(([A, B | {"weight": 0}], {}, 1), ([A, B | {"negate": True}], {}, 1)),
        ([A, share(3, 4)], by("minimum"), 3 / 4),
        ([A, share(3, 4)], by("all_or_nothing", threshold=0.7), 7 / 8),
        ([A | {"weight": 3}, share(3, 4)], by("all_or_nothing", threshold=0.75), 15 / 16),
        *(([A, share(3, 4)], by("all_or_nothing"), 0), ([A, A, B], by("threshold", threshold=0.7), 2 / 3)),
        ([share(1, 2)], by("threshold", threshold=1), 0),
        ([share(1, 2, min_score=0.5)], by("threshold", threshold=1), 1),
        ([HALF, C], {}, 3 / 4),
        ([A, share(3, 5, name="safety")], by("safety_gate", required=["safety"]), 0.8),
        ([A, share(4, 5, required=True)], by("safety_gate"), 9 / 10),
        ([A, WORDS], by("safety_gate", required=["words"]), 0),
        ([A, B, NO_JUDGE], {}, 1 / 3),
    ],
)
async def test_the_score_of_members(members: Any, fields: Any, score: float, combined: Graded) -> None:
    found = await combined(*members, **fields)
    assert found.score == pytest.approx(score)
    assert found.passed or score < 0.8


@pytest.mark.parametrize(
    ("fields", "passed"),
    [
        *(({}, False), ({"threshold": 0.5}, True), ({"min_score": 0.5}, True)),
        ({"threshold": 0.5, "min_score": 0.6}, False),
        *((by("maximum"), True), (by("threshold", threshold=0.5), True), (by("threshold", threshold=0.6), False)),
        (by("threshold"), False),
        (by("threshold", threshold=0.5) | {"min_score": 0.9}, False),
        *(({"negate": True}, False), ({"negate": True, "min_score": 0.5}, True)),
    ],
)
async def test_from_which_score_it_passes(fields: dict[str, Any], passed: bool, combined: Graded) -> None:
    assert (await combined(A, B, **fields)).passed is passed


async def test_it_says_what_is_low_and_why(combined: Graded) -> None:
    found = await combined(A, B)
    message = found.checks[0].message
    assert message.startswith("weighted_average is 0.5, expected at least 0.8: b scored 0 (")
    assert [member.name for member in found.members] == ["a", "b"]


REQUIRED = B | {"required": True}
FATAL = f"b: required, but its score is 0: {NO_ROME}"


@pytest.mark.parametrize(
    ("members", "fields", "fatal"),
    [
        *[
            ([A | {"weight": 99}, REQUIRED], by(kind, threshold=0), FATAL)
            for kind in ("weighted_average", "minimum", "maximum", "all_or_nothing", "threshold")
        ],
        ([A, composite(A, REQUIRED, name="inner", **by("maximum"))], by("maximum"), f"inner: {FATAL}"),
        ([A, REQUIRED], by("safety_gate"), f"the safety gate failed: b scored 0 ({NO_ROME})"),
        ([A, share(1, 2, name="low", required=True, min_score=0.5)], by("maximum"), ""),
        ([A, B, NO_JUDGE | {"required": True}], {}, ""),
    ],
)
async def test_a_required_member_that_fails_is_fatal(members: Any, fields: Any, fatal: str, combined: Graded) -> None:
    found = await combined(*members, **fields)
    assert (found.fatal, found.error) == (fatal, None)
    assert not (fatal and found.passed)


async def test_a_required_member_fails_below_its_least_score(combined: Graded) -> None:
    assert (await combined(A, share(1, 2, name="low", required=True), **by("maximum"))).fatal


@pytest.mark.parametrize(
    ("member", "safe"),
    [
        *((share(3, 5), True), (share(11, 20), False), (share(3, 5, min_score=0.7), False)),
        (share(1, 2, min_score=0.5), True),
        ({"type": "output_check", "contains": ["Paris", "capital", "France", "Rome"]}, False),
    ],
)
async def test_the_safety_gate_opens_at_six_tenths_or_the_own_bar(member: Any, safe: bool, combined: Graded) -> None:
    found = await combined(A | {"weight": 99}, member | {"name": "safety"}, **by("safety_gate", required=["safety"]))
    assert found.passed is safe
    assert bool(found.fatal) is not safe
    assert (found.score == 0) is not safe


async def test_a_violation_of_a_member_is_the_composites_and_fails_it(combined: Graded) -> None:
    dropped = (Message(role="assistant", tool_calls=(ToolCall(tool="drop_table"),)),)
    found = await combined(A, POLICY, **by("maximum"), transcript=PARIS.model_copy(update={"messages": dropped}))
    assert (found.passed, len(found.violations)) == (False, 1)
    assert found.fatal.startswith("policy: ")


@pytest.mark.parametrize(
    ("members", "fields", "message"),
    [
        ([A, B], by("weighted_average", weights={"x": 1}), "names x"),
        ([A, B], by("safety_gate", required=["x"]), "names x"),
        ([A, B], by("safety_gate"), "has no required member"),
        ([A, B], by("code_grader"), "no command"),
        ([A, B | {"name": "a"}], by("code_grader", command=["true"]), "several members have the name a"),
        ([A, NO_JUDGE], by("code_grader", command=["true"]), "judge: no judge is configured"),
        ([A | {"weight": 0}], {}, "weight 0"),
        ([A, NO_JUDGE], {}, "judge: no judge is configured"),
        ([A, B, NO_JUDGE], {"negate": True}, "judge: no judge is configured"),
    ],
)
async def test_what_cannot_be_meant_or_measured(members: Any, fields: Any, message: str, combined: Graded) -> None:
    found = await combined(*members, **fields)
    assert message in found.error
    assert found.transient is False


async def test_an_error_keeps_the_grades_of_the_members(combined: Graded) -> None:
    assert [member.name for member in (await combined(A, NO_JUDGE)).members] == ["a", "judge"]


class DownJudge:
    """A judge that nobody can reach for now."""

    name = "down"
    votes = 1

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        raise MeasurementError("the judge is down", transient=True)


async def test_an_error_may_be_gone_at_the_next_attempt(combined: Graded) -> None:
    found = await combined(A, NO_JUDGE, judge=DownJudge())
    assert (found.error, found.transient) == ("judge: the judge is down", True)


@pytest.mark.parametrize(
    ("members", "fields"),
    [
        ([A, B, NO_JUDGE], {}),
        ([B, B, NO_JUDGE], by("threshold", threshold=0.5)),
        ([REQUIRED, NO_JUDGE], by("maximum")),
        ([B, NO_JUDGE], by("safety_gate", required=["b"])),
    ],
)
async def test_a_certain_fail_goes_before_what_was_not_measured(members: Any, fields: Any, combined: Graded) -> None:
    found = await combined(*members, **fields)
    assert (found.passed, found.error) == (False, None)
    assert found.score is not None
    assert found.checks[-1].message.startswith("not measured: judge: ")


@pytest.mark.parametrize(
    ("members", "fields"),
    [([A | {"weight": 9}, NO_JUDGE], {}), ([A, NO_JUDGE], by("maximum")), ([A, NO_JUDGE | {"weight": 0}], {})],
)
async def test_a_certain_pass_goes_before_what_was_not_measured(members: Any, fields: Any, combined: Graded) -> None:
    assert (await combined(*members, **fields)).passed


@pytest.mark.parametrize(
    "unknown",
    [
        NO_JUDGE | {"required": True},
        {"type": "composite", "name": "inner", "assertions": [NO_JUDGE | {"required": True}]},
        {"type": "rubrics", "name": "rubric", "criteria": [{"id": "x", "outcome": "y", "required": True}]},
        {"type": "llm_rubric", "name": "ours", "rubric": "Is it true?"},
    ],
)
async def test_nothing_passes_past_a_member_that_may_bind_and_was_not_measured(unknown: Any, combined: Graded) -> None:
    found = await combined(A, unknown, **by("maximum"))
    assert (found.passed, found.score) == (False, None)


async def test_what_judges_used_is_added_up(combined: Graded) -> None:
    judge = RecordedJudge('{"score": 1, "assertions": [], "reasoning": "fine"}')
    found = await combined(A, NO_JUDGE, composite(NO_JUDGE, name="inner"), judge=judge)
    assert (found.usage.tokens_in, found.usage.tokens_out) == (20, 6)
    assert (await combined(A)).usage == Usage()


AGGREGATE = """\
import json, sys
results = json.load(sys.stdin)["results"]
json.dump(results, open("seen.json", "w"))
print(json.dumps({"score": min(found["score"] for found in results.values()), "hits": ["seen"]}))
"""


async def test_a_program_gives_the_score(combined: Graded, provide: Files, suites_folder: Path) -> None:
    provide({"graders/aggregate.py": AGGREGATE})
    fields = by("code_grader", command=["python3", "aggregate.py"], cwd="graders")
    found = await combined(A, share(3, 4, name="most"), **fields)
    assert (found.score, found.passed, found.type, found.name) == (0.75, False, "composite", "all")
    assert (await combined(A, share(3, 4, name="most"), **fields, threshold=0.7)).passed
    seen = json.loads((suites_folder / "graders" / "seen.json").read_text())
    assert (seen["a"]["verdict"], seen["most"]["verdict"]) == ("pass", "borderline")
    assert seen["a"]["hits"] == [seen["a"]["assertions"][0]["text"]]
    assert seen["most"]["misses"] == ["no_0: 0 calls, expected at least 1"]


async def test_a_program_without_a_usable_reply_is_an_error(combined: Graded) -> None:
    found = await combined(A, **by("code_grader", command=["echo", '{"score": ']))
    assert (found.score, found.passed) == (None, False)


async def test_a_program_is_not_asked_about_what_fails_anyway(combined: Graded) -> None:
    fields = by("code_grader", command=["echo", '{"score": 1}'])
    assert (await combined(A, B, **fields)).passed
    found = await combined(A, REQUIRED, **fields)
    assert (found.score, found.passed, found.fatal) == (0, False, FATAL)


@pytest.mark.parametrize("prompt", ["", "Weigh {{EVALUATOR_RESULTS_JSON}} well."])
async def test_the_judge_gives_the_score(prompt: str, combined: Graded) -> None:
    judge = RecordedJudge('{"score": 0.9, "assertions": [], "reasoning": "both fine"}')
    found = await combined(A, B, **by("llm_grader", prompt=prompt), judge=judge)
    assert (found.score, found.passed, found.type, found.usage.tokens_in) == (0.9, True, "composite", 10)
    asked = "\n".join(message.content for message in judge.requests[-1].messages)
    assert all(part in asked for part in ('"b": {', '"score": 0', prompt.partition(" ")[0]))
