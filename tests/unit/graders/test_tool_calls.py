from typing import Any

import pytest

from passgate.tasks.graders.tool_calls import call_range, leaves
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.transcript import Transcript
from tests.unit.graders.trials import Graded, called


def options(**fields: Any) -> dict[str, Any]:
    return {"type": "tool_calls", **fields}


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
async def test_required_tools(required: list[Any], score: float, graded: Graded) -> None:
    transcript = called(("read", {"path": "/etc/hosts"}), ("read", {"path": "/tmp/x"}), "send")
    result = await graded(options(required=required), transcript)
    assert (result.passed, result.score, result.error) == (score == 1.0, score, None)


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
async def test_required_calls_may_have_an_order(required: list[Any], kept: bool, graded: Graded) -> None:
    transcript = called("a", "b", "a", "c")
    assert (await graded(options(required=required), transcript)).passed
    assert (await graded(options(required=required, in_order=True), transcript)).passed is kept


@pytest.mark.parametrize("tool", ["crm.read", "mcp__crm__READ"])
async def test_a_required_tool_is_found_with_its_server_before_it(tool: str, graded: Graded) -> None:
    assert (await graded(options(required=["read"]), called(tool))).passed
    assert not (await graded(options(required=["ead"]), called(tool))).passed


async def test_a_forbidden_call_is_a_violation(graded: Graded) -> None:
    transcript = called("read", ("drop_table", {"name": "orders"}))
    result = await graded(options(required=["read"], forbidden=["drop_*"]), transcript)
    assert (result.passed, result.score, result.error) == (False, 0.5, None)
    (violation,) = result.violations
    assert violation.rule is ViolationRule.FORBIDDEN_TOOL
    assert violation.message == 'forbidden tool called: drop_table({"name": "orders"})'


@pytest.mark.parametrize(
    ("pattern", "transcript", "violations"),
    [
        ({"tool": "transfer", "params": {"amount": ">100"}}, called(("transfer", {"amount": 100})), 0),
        ({"tool": "transfer", "params": {"amount": ">100"}}, called(("transfer", {"amount": 101})), 1),
        ("drop_*", called("drop_table", complete=False), 1),
    ],
    ids=["other arguments", "forbidden arguments", "others are unknown"],
)
async def test_what_is_forbidden(pattern: Any, transcript: Transcript, violations: int, graded: Graded) -> None:
    result = await graded(options(forbidden=[pattern]), transcript)
    assert (result.passed, result.error, len(result.violations)) == (not violations, None, violations)


async def test_violations_are_bounded_and_give_no_key_away(graded: Graded) -> None:
    key = "AKIA" + "A" * 16
    calls = [("send", {"pad": "x" * 470, "body": key, "rest": "y" * 100_000})] * 50
    result = await graded(options(forbidden=["send"]), called(*calls))
    assert len(result.violations) == 20
    assert max(len(violation.message) for violation in result.violations) < 700
    assert "AKIA****" in result.violations[0].message
    assert key[:6] not in result.violations[0].message


@pytest.mark.parametrize(
    ("fields", "complete", "error"),
    [
        ({"required": ["read"]}, False, "PASSGATE_TRANSCRIPT"),
        ({"forbidden": ["drop_*"]}, False, "PASSGATE_TRANSCRIPT"),
        ({}, True, "nothing to check"),
    ],
)
async def test_unknown_calls_and_no_rule_are_an_error(fields: Any, complete: bool, error: str, graded: Graded) -> None:
    assert error in (await graded(options(**fields), called("read", complete=complete))).error


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


def test_leaves_are_names_and_values_at_any_depth() -> None:
    assert sorted(map(str, leaves({"a": [1, {"b": "x"}], "c": None}))) == ["1", "None", "a", "b", "c", "x"]
    value: Any = "core"
    for _ in range(100_000):
        value = [value]
    assert list(leaves(value)) == ["core"]
