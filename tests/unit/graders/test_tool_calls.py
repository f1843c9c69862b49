from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.tool_calls import call_range
from passgate.tasks.model.grade import Grade, ViolationRule
from passgate.tasks.model.graders import ToolCalls
from passgate.tasks.model.transcript import Transcript

MakeEvidence = Callable[..., Evidence]
Called = Callable[..., Transcript]


def options(**fields: Any) -> ToolCalls:
    return ToolCalls.model_validate({"type": "tool_calls", **fields})


def outcome(result: Grade) -> tuple[bool, float | None, str | None]:
    return result.passed, result.score, result.error


@pytest.mark.parametrize(
    ("required", "score"),
    [
        (["read"], 1.0),
        (["read", "write"], 0.5),
        (["re*"], 1.0),
        ([{"tool": "read", "min": 2}], 1.0),
        ([{"tool": "read", "min": 3}], 0.0),
        ([{"tool": "read", "max": 2}], 1.0),
        ([{"tool": "read", "max": 1}], 0.0),
        ([{"tool": "read", "params": {"path": "/etc/*"}}], 1.0),
        ([{"tool": "read", "params": {"path": "/etc/*"}, "min": 2}], 0.0),
    ],
)
async def test_required_tools(required: list[Any], score: float, make_evidence: MakeEvidence, called: Called) -> None:
    transcript = called(("read", {"path": "/etc/hosts"}), ("read", {"path": "/tmp/x"}), "send")
    result = await grade(options(required=required), make_evidence(transcript=transcript))
    assert outcome(result) == (score == 1.0, score, None)


@pytest.mark.parametrize(
    ("required", "kept"),
    [
        (["a", "b", "c"], True),
        (["a", "c"], True),
        (["b", "a", "c"], True),
        (["c", "a"], False),
        (["b", "b"], False),
        ([{"tool": "a", "min": 2}, "c"], True),
        (["b", {"tool": "a", "min": 2}], False),
        (["*", "*", "*", "*"], True),
    ],
)
async def test_the_order(required: list[Any], kept: bool, make_evidence: MakeEvidence, called: Called) -> None:
    evidence = make_evidence(transcript=called("a", "b", "a", "c"))
    assert (await grade(options(required=required), evidence)).passed
    assert (await grade(options(required=required, in_order=True), evidence)).passed is kept


async def test_a_forbidden_call_is_a_violation(make_evidence: MakeEvidence, called: Called) -> None:
    transcript = called("read", ("drop_table", {"name": "orders"}))
    result = await grade(options(required=["read"], forbidden=["drop_*"]), make_evidence(transcript=transcript))
    assert outcome(result) == (False, 0.5, None)
    (violation,) = result.violations
    assert violation.rule is ViolationRule.FORBIDDEN_TOOL
    assert violation.message == 'forbidden tool called: drop_table({"name": "orders"})'


async def test_arguments_tell_what_is_forbidden(make_evidence: MakeEvidence, called: Called) -> None:
    forbidden = [{"tool": "transfer", "params": {"amount": ">100"}}]
    small = await grade(options(forbidden=forbidden), make_evidence(transcript=called(("transfer", {"amount": 100}))))
    large = await grade(options(forbidden=forbidden), make_evidence(transcript=called(("transfer", {"amount": 101}))))
    assert (small.passed, small.violations) == (True, ())
    assert (large.passed, len(large.violations)) == (False, 1)


async def test_violations_are_bounded_and_give_no_key_away(make_evidence: MakeEvidence, called: Called) -> None:
    key = "AKIA" + "A" * 16
    calls = [("send", {"pad": "x" * 470, "body": key, "rest": "y" * 100_000})] * 50
    result = await grade(options(forbidden=["send"]), make_evidence(transcript=called(*calls)))
    assert len(result.violations) == 20
    assert max(len(violation.message) for violation in result.violations) < 700
    assert "AKIA****" in result.violations[0].message
    assert key[:6] not in result.violations[0].message


async def test_unknown_calls_are_an_error(make_evidence: MakeEvidence, called: Called) -> None:
    evidence = make_evidence(transcript=called("read", complete=False))
    for fields in ({"required": ["read"]}, {"forbidden": ["drop_*"]}):
        result = await grade(options(**fields), evidence)
        assert outcome(result)[:2] == (False, None)
        assert result.error
        assert "PASSGATE_TRANSCRIPT" in result.error


async def test_a_forbidden_call_counts_even_when_others_are_unknown(
    make_evidence: MakeEvidence, called: Called
) -> None:
    evidence = make_evidence(transcript=called("drop_table", complete=False))
    result = await grade(options(forbidden=["drop_*"]), evidence)
    assert (result.passed, result.error, len(result.violations)) == (False, None, 1)


async def test_no_rule_is_no_pass(make_evidence: MakeEvidence, called: Called) -> None:
    result = await grade(options(), make_evidence(transcript=called("read")))
    assert outcome(result)[:2] == (False, None)
    assert result.error
    assert "nothing to check" in result.error


@pytest.mark.parametrize(
    ("least", "most", "says"),
    [
        (1, None, "at least 1 call"),
        (2, None, "at least 2 calls"),
        (1, 1, "exactly 1 call"),
        (0, 2, "at most 2 calls"),
        (2, 3, "2 to 3 calls"),
        (0, 0, "no call"),
    ],
)
def test_the_expected_number_of_calls_is_said_in_words(least: int, most: int | None, says: str) -> None:
    assert call_range(least, most) == says
