"""Tool trajectories as AgentV 4.42.4 scores them, and what passgate says where it does not ask for that."""

from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import ToolTrajectory
from passgate.tasks.model.task import Scoring
from passgate.tasks.model.transcript import Message, ToolCall, Transcript

MakeEvidence = Callable[..., Evidence]
Compare = Callable[..., Any]
CALLS = (
    ToolCall(tool="search", arguments={"q": "a", "limit": 5}, duration_ms=100),
    ToolCall(tool="read", arguments={"id": 1}, duration_ms=50),
    ToolCall(tool="search", arguments={"q": "b", "limit": 5}, duration_ms=900),
    ToolCall(tool="answer", duration_ms=10),
)
TRANSCRIPT = Transcript(messages=(Message(role="assistant", content="done", tool_calls=CALLS),), output="done")


@pytest.fixture
def compare(make_evidence: MakeEvidence) -> Compare:
    """AgentV's score and passgate's own."""

    async def both(transcript: Transcript = TRANSCRIPT, **fields: Any) -> tuple[float | None, float | None]:
        options = ToolTrajectory.model_validate({"type": "tool_trajectory", **fields})
        theirs = make_evidence(transcript=transcript, scoring=Scoring(compat="agentv"))
        ours = make_evidence(transcript=transcript)
        return (await grade(options, theirs)).score, (await grade(options, ours)).score

    return both


def search(**fields: Any) -> dict[str, Any]:
    return {"tool": "search", **fields}


def tools(*names: str) -> list[dict[str, Any]]:
    return [{"tool": name} for name in names]


@pytest.mark.parametrize(
    ("fields", "theirs", "ours"),
    [
        ({"minimums": {"search": 2, "read": 1}}, 1, 1),
        ({"minimums": {"search": 3, "read": 1}}, 1 / 2, 1 / 2),
        ({"minimums": {"search": 2}, "expected": tools("missing")}, 1, 1 / 2),
        ({"minimums": {"read": 1}, "negate": True}, 0, 0),
        ({"expected": tools("search")}, 1, 1),
    ],
)
async def test_any_order(fields: dict[str, Any], theirs: float, ours: float, compare: Compare) -> None:
    assert await compare(**fields) == pytest.approx((theirs, ours), abs=1e-9)


@pytest.mark.parametrize(
    ("expected", "args_match", "theirs", "ours"),
    [
        (tools("search", "answer"), "exact", 1, 1),
        (tools("answer", "search"), "exact", 1 / 2, 0),
        ([search(args={"q": "a"})], "superset", 1, 1),
        ([search(args={"q": "a"})], "exact", 0, 0),
        ([search(args={"q": "b"})], "superset", 0, 1),
        ([search(args="any")], "exact", 1, 1),
        ([search(args={"q": "any"})], "superset", 0, 0),
        ([search(args={"q": "a", "limit": 5, "extra": 1})], "subset", 1, 1),
        ([search(args={"q": "a", "limit": 99})], ["q"], 1, 1),
        ([search(args={"q": "zzz"}, args_match="ignore")], "exact", 1, 1),
        ([search(max_duration_ms=200), *tools("read")], "exact", 1, 1),
        ([search(max_duration_ms=50), *tools("read")], "exact", 2 / 3, 1 / 2),
        (tools("missing", "read"), "exact", 0, 1 / 2),
        ([*tools("read"), {"tool": "missing", "max_duration_ms": 50}], "exact", 1 / 3, 1 / 2),
    ],
)
async def test_in_order(expected: Any, args_match: Any, theirs: float, ours: float, compare: Compare) -> None:
    scores = await compare(mode="in_order", args_match=args_match, expected=expected)
    assert scores == pytest.approx((theirs, ours), abs=1e-9)


@pytest.mark.parametrize(
    ("expected", "theirs", "ours"),
    [
        (tools("search", "read", "search", "answer"), 1, 1),
        (tools("search", "read", "search"), 1, 0),
        (tools("search", "read", "search", "answer", "done"), 4 / 5, 0),
        ([search(max_duration_ms=50), *tools("read", "search", "answer")], 4 / 5, 0),
        (tools("read", "search", "search", "answer"), 1 / 2, 0),
    ],
)
async def test_exact_with_a_call_too_many_or_one_missing(
    expected: Any, theirs: float, ours: float, compare: Compare
) -> None:
    assert await compare(mode="exact", expected=expected) == pytest.approx((theirs, ours), abs=1e-9)


@pytest.mark.parametrize(
    ("expected", "theirs", "ours"),
    [
        (tools("answer", "search"), 1, 1),
        (tools("read", "read"), 1 / 2, 1 / 2),
        ([{"tool": "read", "max_duration_ms": 1}], 1, 0),
        ([search(), search(args={"q": "a", "limit": 5})], 1 / 2, 1),
    ],
)
async def test_superset(expected: Any, theirs: float, ours: float, compare: Compare) -> None:
    assert await compare(mode="superset", expected=expected) == pytest.approx((theirs, ours), abs=1e-9)


@pytest.mark.parametrize(
    ("expected", "theirs", "ours"),
    [
        (tools("search", "read", "answer"), 1, 1),
        (tools("search"), 1 / 2, 0),
        (tools("search", "read"), 3 / 4, 0),
        ([], 0, 0),
    ],
)
async def test_subset(expected: Any, theirs: float, ours: float, compare: Compare) -> None:
    assert await compare(mode="subset", expected=expected) == pytest.approx((theirs, ours), abs=1e-9)


async def test_a_duration_that_is_not_known_is_left_out(compare: Compare) -> None:
    unknown = Transcript(messages=(Message(role="assistant", tool_calls=(ToolCall(tool="search"),)),))
    for mode in ("in_order", "exact"):
        assert await compare(unknown, mode=mode, expected=[search(max_duration_ms=50)]) == (1, None)


async def test_an_agent_that_only_prints_text_has_made_no_calls(compare: Compare) -> None:
    text = Transcript(messages=(Message(role="assistant", content="no tools"),), output="no tools", complete=False)
    assert await compare(text, mode="in_order", expected=tools("search")) == (0, None)
    assert await compare(text, mode="subset", expected=tools("search")) == (1, None)
    assert await compare(text, minimums={"search": 1}) == (0, None)
