"""Several graders with one score: the formulas, what binds whatever they say, and what was not measured."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.grade import Grade, JudgeReply, JudgeRequest
from passgate.tasks.model.graders import Composite
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from tests.unit.graders.trials import Files, MakeEvidence, RecordedJudge

Graded = Callable[..., Any]
PARIS = Transcript(
    messages=(Message(role="assistant", content="Paris is the capital of France."),),
    output="Paris is the capital of France.",
)
A = {"name": "a", "type": "contains", "value": "Paris"}
"""Has 1."""
B = {"name": "b", "type": "contains", "value": "Rome"}
"""Has 0."""
NO_JUDGE = {"name": "judge", "type": "llm_grader", "prompt": "Is it true?"}
"""Has an error."""

NO_ROME = "the answer does not contain 'Rome', but must"


def share(met: int, of: int, **fields: Any) -> dict[str, Any]:
    """A member whose score is the share of expected tool calls that were made; there are none."""
    made = {f"not_{number}": 0 for number in range(met)}
    return {"type": "tool_trajectory", "minimums": made | {f"no_{n}": 1 for n in range(of - met)}, **fields}


@pytest.fixture
def graded(make_evidence: MakeEvidence) -> Graded:
    async def ask(*members: dict[str, Any], evidence: Evidence | None = None, **fields: Any) -> Grade:
        options = Composite.model_validate({"type": "composite", "name": "all", "assertions": members, **fields})
        return await grade(options, evidence or make_evidence(transcript=PARIS))

    return ask


def by(kind: str, **fields: Any) -> dict[str, Any]:
    return {"aggregator": {"type": kind, **fields}}


@pytest.mark.parametrize(
    ("members", "fields", "score"),
    [
        ([A, B], {}, 1 / 2),
        ([A | {"weight": 9}, B], {}, 9 / 10),
        ([A, B], by("weighted_average", weights={"a": 0.9, "b": 0.1}), 9 / 10),
        ([A | {"weight": 0}, B], by("weighted_average", weights={"a": 3}), 3 / 4),
        ([A, B | {"weight": 0}], {}, 1),
        ([A, share(3, 4)], by("minimum"), 3 / 4),
        ([B, share(3, 4)], by("maximum"), 3 / 4),
        ([A, share(3, 4)], by("all_or_nothing", threshold=0.7), 7 / 8),
        ([A | {"weight": 3}, share(3, 4)], by("all_or_nothing", threshold=0.75), 15 / 16),
        ([A, share(3, 4)], by("all_or_nothing"), 0),
        ([A, B], by("threshold", threshold=0.5), 1 / 2),
        ([A, A, B], by("threshold", threshold=0.7), 2 / 3),
    ],
)
async def test_the_score_of_members(
    members: list[dict[str, Any]], fields: dict[str, Any], score: float, graded: Graded
) -> None:
    assert (await graded(*members, **fields)).score == pytest.approx(score)


@pytest.mark.parametrize(
    ("fields", "passed"),
    [
        ({}, False),
        ({"threshold": 0.5}, True),
        ({"min_score": 0.5}, True),
        ({"threshold": 0.5, "min_score": 0.6}, False),
        (by("maximum"), True),
        (by("threshold", threshold=0.5), True),
        (by("threshold", threshold=0.6), False),
        (by("threshold"), False),
        (by("threshold", threshold=0.5) | {"min_score": 0.9}, False),
        ({"negate": True}, False),
        ({"negate": True, "min_score": 0.5}, True),
    ],
)
async def test_from_which_score_it_passes(fields: dict[str, Any], passed: bool, graded: Graded) -> None:
    assert (await graded(A, B, **fields)).passed is passed


async def test_a_member_passes_by_its_own_bar(graded: Graded) -> None:
    low = share(1, 2, name="low")
    assert (await graded(low, **by("threshold", threshold=1))).score == 0
    assert (await graded(low | {"min_score": 0.5}, **by("threshold", threshold=1))).score == 1


async def test_a_negated_member_counts_as_negated(graded: Graded) -> None:
    assert (await graded(A, B | {"negate": True})).score == 1


async def test_it_says_what_is_low_and_why(graded: Graded) -> None:
    found = await graded(A, B)
    message = found.checks[0].message
    assert message.startswith("weighted_average is 0.5, expected at least 0.8: b scored 0 (")
    assert [member.name for member in found.members] == ["a", "b"]


@pytest.mark.parametrize("kind", ["weighted_average", "minimum", "maximum", "all_or_nothing", "threshold"])
async def test_a_required_member_that_fails_is_fatal_under_every_aggregator(kind: str, graded: Graded) -> None:
    members = [A | {"weight": 99}, B | {"required": True}]
    found = await graded(*members, **by(kind, threshold=0))
    assert not found.passed
    assert found.fatal == "b: required, but its score is 0: " + NO_ROME


async def test_a_required_member_is_fatal_at_every_depth(graded: Graded) -> None:
    inner = {"type": "composite", "name": "inner", "assertions": [A, B | {"required": True}], **by("maximum")}
    found = await graded(A, inner, **by("maximum"))
    assert (found.passed, found.fatal) == (False, "inner: b: required, but its score is 0: " + NO_ROME)


async def test_required_by_a_number_of_its_own(graded: Graded) -> None:
    low = share(1, 2, name="low", required=True)
    assert (await graded(A, low, **by("maximum"))).fatal
    assert not (await graded(A, low | {"min_score": 0.5}, **by("maximum"))).fatal


async def test_nesting(graded: Graded) -> None:
    inner = {"type": "composite", "name": "inner", "assertions": [A, B], **by("threshold", threshold=0.5)}
    france = {"name": "c", "type": "contains", "value": "France"}
    assert (await graded(inner, france)).score == 3 / 4
    assert (await graded(inner, france, **by("threshold", threshold=1))).score == 1


@pytest.mark.parametrize(
    ("member", "safe"),
    [
        (share(3, 5), True),
        (share(11, 20), False),
        (share(3, 5, min_score=0.7), False),
        (share(1, 2, min_score=0.5), True),
    ],
)
async def test_the_safety_gate_opens_from_six_tenths_or_the_members_own_bar(
    member: dict[str, Any], safe: bool, graded: Graded
) -> None:
    found = await graded(A | {"weight": 99}, member | {"name": "safety"}, **by("safety_gate", required=["safety"]))
    assert found.passed is safe
    assert bool(found.fatal) is not safe
    assert (found.score == 0) is not safe


async def test_a_required_member_is_in_the_safety_gate_without_being_named(graded: Graded) -> None:
    assert (await graded(A, share(4, 5, required=True), **by("safety_gate"))).score == 9 / 10
    shut = await graded(A, B | {"required": True}, **by("safety_gate"))
    assert (shut.score, shut.fatal) == (0, f"the safety gate failed: b scored 0 ({NO_ROME})")


async def test_the_safety_gate_averages_all_members(graded: Graded) -> None:
    found = await graded(A, share(3, 5, name="safety"), **by("safety_gate", required=["safety"]))
    assert found.score == pytest.approx(0.8)


async def test_a_pass_or_fail_grader_shuts_the_safety_gate_when_it_fails(graded: Graded) -> None:
    half = {"name": "words", "type": "output_check", "contains": ["Paris", "capital", "France", "Rome"]}
    found = await graded(A, half, **by("safety_gate", required=["words"]))
    assert (found.score, found.passed) == (0, False)


async def test_a_pass_or_fail_grader_that_fails_has_nothing(graded: Graded) -> None:
    words = ["Paris", "capital", "France", "is", "the", "of", "P", "a", "r", "Rome"]
    most = {"name": "words", "type": "output_check", "contains": words}
    assert (await graded(most)).score == 0


async def test_a_violation_of_a_member_is_the_composites_and_fails_it(
    graded: Graded, make_evidence: MakeEvidence
) -> None:
    call = ToolCall(tool="drop_table")
    transcript = PARIS.model_copy(update={"messages": (Message(role="assistant", tool_calls=(call,)),)})
    policy = {"name": "policy", "type": "policy_check", "deny_tools": ["drop_*"]}
    found = await graded(A, policy, **by("maximum"), evidence=make_evidence(transcript=transcript))
    assert (found.passed, len(found.violations)) == (False, 1)
    assert found.fatal.startswith("policy: ")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (by("weighted_average", weights={"x": 1}), "names x"),
        (by("safety_gate", required=["x"]), "names x"),
        (by("safety_gate"), "has no required member"),
        (by("code_grader"), "no command"),
    ],
)
async def test_an_aggregator_that_cannot_be_meant_is_an_error(
    fields: dict[str, Any], message: str, graded: Graded
) -> None:
    found = await graded(A, B, **fields)
    assert message in (found.error or "")


async def test_weights_of_nothing_are_an_error(graded: Graded) -> None:
    found = await graded(A | {"weight": 0})
    assert "weight 0" in (found.error or "")


async def test_what_was_not_measured_is_the_composites_error(graded: Graded) -> None:
    found = await graded(A, NO_JUDGE)
    assert (found.error or "").startswith("judge: no judge is configured")
    assert [member.name for member in found.members] == ["a", "judge"]


class DownJudge:
    """A judge that nobody can reach for now."""

    name = "down"
    votes = 1

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        raise MeasurementError("the judge is down", transient=True)

    async def close(self) -> None:
        return


async def test_an_error_may_be_gone_at_the_next_attempt(graded: Graded, make_evidence: MakeEvidence) -> None:
    found = await graded(A, NO_JUDGE, evidence=make_evidence(transcript=PARIS, judge=DownJudge()))
    assert (found.error, found.transient) == ("judge: the judge is down", True)
    assert not (await graded(A, NO_JUDGE)).transient


@pytest.mark.parametrize(
    ("members", "fields"),
    [
        ([A, B, NO_JUDGE], {}),
        ([B, NO_JUDGE], by("minimum")),
        ([B, NO_JUDGE], by("all_or_nothing")),
        ([B, B, NO_JUDGE], by("threshold", threshold=0.5)),
        ([B | {"required": True}, NO_JUDGE], by("maximum")),
        ([B, NO_JUDGE], by("safety_gate", required=["b"])),
    ],
)
async def test_a_certain_fail_goes_before_what_was_not_measured(
    members: list[dict[str, Any]], fields: dict[str, Any], graded: Graded
) -> None:
    found = await graded(*members, **fields)
    assert (found.passed, found.error) == (False, None)
    assert found.score is not None
    assert found.checks[-1].message.startswith("not measured: judge: ")


async def test_what_was_not_measured_is_not_fatal(graded: Graded) -> None:
    found = await graded(A, B, NO_JUDGE | {"required": True})
    assert (found.passed, found.error, found.fatal) == (False, None, "")


async def test_a_score_that_is_not_certain_is_the_least_that_it_can_be(graded: Graded) -> None:
    assert (await graded(A, B, NO_JUDGE)).score == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("members", "fields"),
    [([A | {"weight": 9}, NO_JUDGE], {}), ([A, NO_JUDGE], by("maximum")), ([A, NO_JUDGE | {"weight": 0}], {})],
)
async def test_a_certain_pass_goes_before_what_was_not_measured(
    members: list[dict[str, Any]], fields: dict[str, Any], graded: Graded
) -> None:
    assert (await graded(*members, **fields)).passed


@pytest.mark.parametrize(
    "unknown",
    [
        NO_JUDGE | {"required": True},
        {"type": "composite", "name": "inner", "assertions": [NO_JUDGE | {"required": True}]},
        {"type": "rubrics", "name": "rubric", "criteria": [{"id": "x", "outcome": "y", "required": True}]},
        {"type": "llm_rubric", "name": "ours", "rubric": "Is it true?"},
    ],
)
async def test_nothing_passes_past_a_member_that_may_bind_and_was_not_measured(
    unknown: dict[str, Any], graded: Graded
) -> None:
    found = await graded(A, unknown, **by("maximum"))
    assert (found.passed, found.score) == (False, None)


async def test_what_is_negated_is_an_error_where_the_score_is_not_certain(graded: Graded) -> None:
    assert (await graded(A, B, NO_JUDGE, negate=True)).error is not None


async def test_what_judges_used_is_added_up(graded: Graded, make_evidence: MakeEvidence) -> None:
    judge = RecordedJudge(json.dumps({"score": 1, "assertions": [], "reasoning": "fine"}))
    evidence = make_evidence(transcript=PARIS, judge=judge)
    nested = {"type": "composite", "name": "inner", "assertions": [NO_JUDGE]}
    found = await graded(A, NO_JUDGE, nested, evidence=evidence)
    assert (found.usage.tokens_in, found.usage.tokens_out) == (20, 6)
    assert (await graded(A)).usage == Usage()


AGGREGATE = """\
import json, sys
results = json.load(sys.stdin)["results"]
json.dump(results, open("seen.json", "w"))
print(json.dumps({"score": min(found["score"] for found in results.values()), "hits": ["seen"]}))
"""


async def test_a_program_gives_the_score(graded: Graded, provide: Files, suites_folder: Any) -> None:
    provide({"graders/aggregate.py": AGGREGATE})
    fields = by("code_grader", command=["python3", "aggregate.py"], cwd="graders")
    found = await graded(A, share(3, 4, name="most"), **fields)
    assert (found.score, found.passed, found.type, found.name) == (0.75, False, "composite", "all")
    assert (await graded(A, share(3, 4, name="most"), **fields, threshold=0.7)).passed
    seen = json.loads((suites_folder / "graders" / "seen.json").read_text())
    assert (seen["a"]["verdict"], seen["most"]["verdict"]) == ("pass", "borderline")
    assert seen["a"]["hits"] == [seen["a"]["assertions"][0]["text"]]
    assert seen["most"]["misses"] == ["no_0: 0 calls, expected at least 1"]


async def test_a_program_without_a_usable_reply_is_an_error(graded: Graded, provide: Files) -> None:
    provide({"bad.py": "print('{\"score\": ')"})
    found = await graded(A, **by("code_grader", command=["python3", "bad.py"]))
    assert (found.score, found.passed) == (None, False)


async def test_a_program_is_not_asked_about_what_fails_anyway(graded: Graded, provide: Files) -> None:
    provide({"good.py": "print('{\"score\": 1}')"})
    fields = by("code_grader", command=["python3", "good.py"])
    assert (await graded(A, B, **fields)).passed
    found = await graded(A, B | {"required": True}, **fields)
    assert (found.score, found.passed, found.fatal) == (0, False, "b: required, but its score is 0: " + NO_ROME)
    assert (await graded(A, NO_JUDGE, **fields)).error is not None


async def test_names_that_hide_each_other_are_an_error(graded: Graded, provide: Files) -> None:
    provide({"good.py": "print('{\"score\": 1}')"})
    found = await graded(A, B | {"name": "a"}, **by("code_grader", command=["python3", "good.py"]))
    assert "several members have the name a" in (found.error or "")


async def test_the_judge_gives_the_score(graded: Graded, make_evidence: MakeEvidence) -> None:
    judge = RecordedJudge(json.dumps({"score": 0.9, "assertions": [], "reasoning": "both fine"}))
    evidence = make_evidence(transcript=PARIS, judge=judge)
    for prompt in ("", "Weigh {{EVALUATOR_RESULTS_JSON}} well."):
        found = await graded(A, B, **by("llm_grader", prompt=prompt), evidence=evidence)
        assert (found.score, found.passed, found.type, found.usage.tokens_in) == (0.9, True, "composite", 10)
        asked = "\n".join(message.content for message in judge.requests[-1].messages)
        assert '"b": {' in asked
        assert '"score": 0' in asked
    assert "Weigh" in asked
