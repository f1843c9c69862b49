"""Tool calls, steps and limits as AgentV 4.42.4 scores them, and what passgate says where it does not ask for that."""

from typing import Any

import pytest

from passgate.tasks.model.transcript import ToolCall, Transcript
from passgate.tasks.model.trial import TrialMetrics
from tests.unit.graders.options import arguments, execution, sequence, steps, tools, used
from tests.unit.graders.trials import AGENTV, CALLS, Graded, called, said

SEARCHES = called(
    ToolCall(tool="search", arguments={"q": "a", "limit": 5}, duration_ms=100),
    ToolCall(tool="read", arguments={"id": 1}, duration_ms=50),
    ToolCall(tool="search", arguments={"q": "b", "limit": 5}, duration_ms=900),
    ToolCall(tool="answer", duration_ms=10),
)
NO_CALLS = said("no tools", complete=False)


def search(**fields: Any) -> dict[str, Any]:
    return {"tool": "search", **fields}


def by(mode: str, expected: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_trajectory", "mode": mode, "expected": expected, **fields}


def in_order(expected: Any, args_match: Any = "exact") -> dict[str, Any]:
    return by("in_order", expected, args_match=args_match)


@pytest.mark.parametrize(
    ("options", "theirs", "ours"),
    [
        ({"type": "tool_trajectory", "minimums": {"search": 2, "read": 1}}, 1, 1),
        ({"type": "tool_trajectory", "minimums": {"search": 3, "read": 1}}, 1 / 2, 1 / 2),
        ({"type": "tool_trajectory", "minimums": {"search": 2}, "expected": tools("missing")}, 1, 1 / 2),
        ({"type": "tool_trajectory", "minimums": {"read": 1}, "negate": True}, 0, 0),
        ({"type": "tool_trajectory", "expected": tools("search")}, 1, 1),
        (in_order(tools("search", "answer")), 1, 1),
        (in_order(tools("answer", "search")), 1 / 2, 0),
        (in_order([search(args={"q": "a"})], "superset"), 1, 1),
        (in_order([search(args={"q": "a"})]), 0, 0),
        (in_order([search(args={"q": "b"})], "superset"), 0, 1),
        (in_order([search(args="any")]), 1, 1),
        (in_order([search(args={"q": "any"})], "superset"), 0, 0),
        (in_order([search(args={"q": "a", "limit": 5, "extra": 1})], "subset"), 1, 1),
        (in_order([search(args={"q": "a", "limit": 99})], ["q"]), 1, 1),
        (in_order([search(args={"q": "zzz"}, args_match="ignore")]), 1, 1),
        (in_order([search(max_duration_ms=200), *tools("read")]), 1, 1),
        (in_order([search(max_duration_ms=50), *tools("read")]), 2 / 3, 1 / 2),
        (in_order(tools("missing", "read")), 0, 1 / 2),
        (in_order([*tools("read"), {"tool": "missing", "max_duration_ms": 50}]), 1 / 3, 1 / 2),
        (by("exact", tools("search", "read", "search", "answer")), 1, 1),
        (by("exact", tools("search", "read", "search")), 1, 0),
        (by("exact", tools("search", "read", "search", "answer", "done")), 4 / 5, 0),
        (by("exact", [search(max_duration_ms=50), *tools("read", "search", "answer")]), 4 / 5, 0),
        (by("exact", tools("read", "search", "search", "answer")), 1 / 2, 0),
        (by("superset", tools("answer", "search")), 1, 1),
        (by("superset", tools("read", "read")), 1 / 2, 1 / 2),
        (by("superset", [{"tool": "read", "max_duration_ms": 1}]), 1, 0),
        (by("superset", [search(), search(args={"q": "a", "limit": 5})]), 1 / 2, 1),
        (by("subset", tools("search", "read", "answer")), 1, 1),
        (by("subset", tools("search")), 1 / 2, 0),
        (by("subset", tools("search", "read")), 3 / 4, 0),
        (by("subset", []), 0, 0),
    ],
)
async def test_expected_calls(options: Any, theirs: float, ours: float, scores: Graded) -> None:
    assert await scores(options, SEARCHES) == pytest.approx((theirs, ours), abs=1e-9)


@pytest.mark.parametrize(
    ("options", "theirs", "ours"),
    [
        (used("search"), 1, 1),
        (used("search", "missing"), 0, 0),
        (used("search", min=2, max=2), 1, 1),
        (used("sea*"), 1, 1),
        (used("SEARCH"), 1, 1),
        (used("read", negate=True), 0, 0),
        (used("delete_file", negate=True), 1, 1),
        (used("shell", negate=True), 1, 0),
        (used("exec_command", negate=True), 1, 0),
        (used("Bash", negate=True), 0, 0),
        (used("shell"), 0, 1),
        (used("read", min=0, max=0), 0, 0),
        (used("read", "delete_file", negate=True), 0, 0),
        (sequence("search", "read", "search"), 1, 1),
        (sequence("search", "read", "Bash", "search", mode="exact"), 1, 0),
        (sequence("read", "read"), 0, 0),
        (sequence("read", "shell"), 0, 1),
        (arguments("search", {"q": "b"}), 1, 1),
        (arguments("search", {"q": "b"}, mode="exact"), 0, 0),
        (arguments("search", {"q": "b"}, mode="exact", ignore=["limit"]), 1, 1),
        (arguments("search", {"q": "b"}, mode="exact", defaults={"limit": 5}), 1, 1),
        (arguments("search", {"q": "b", "limit": 5}, defaults={"limit": 5}), 0, 1),
        (arguments("shell", {"command": "rm -rf /"}, negate=True), 1, 0),
        (steps("tool", max=4), 1, 0),
        (steps("command", min=2, max=2), 1, 0),
        (steps("command", min=3, max=3), 0, 1),
        (steps("command", pattern="curl", min=1), 1, 1),
        (steps("any", min=6, max=6), 1, 1),
    ],
)
async def test_steps_and_the_shells_that_are_not_seen(options: Any, theirs: float, ours: float, scores: Graded) -> None:
    assert await scores(options, called(*CALLS)) == (theirs, ours)


@pytest.mark.parametrize(
    ("options", "transcript", "theirs", "ours"),
    [
        (in_order([search(max_duration_ms=50)]), called("search"), 1, None),
        (by("exact", [search(max_duration_ms=50)]), called("search"), 1, None),
        (in_order(tools("search")), NO_CALLS, 0, None),
        (by("subset", tools("search")), NO_CALLS, 1, None),
        ({"type": "tool_trajectory", "minimums": {"search": 1}}, NO_CALLS, 0, None),
        (used("shell"), called("shell"), 1, 1),
        (steps("tool", min=1), called("shell"), 1, 1),
        (used("search"), NO_CALLS, 0, None),
        (used("search", negate=True), NO_CALLS, 1, None),
    ],
)
async def test_what_is_not_known(options: Any, transcript: Any, theirs: float, ours: Any, scores: Graded) -> None:
    assert await scores(options, transcript) == (theirs, ours)


METRICS = TrialMetrics(
    tokens_in=100,
    tokens_cached=20,
    tokens_out=50,
    total_tokens=150,
    wall_time_seconds=1.5,
    tool_call_count=3,
    steps=1,
    cost=0.02,
)
JUST = {"max_tool_calls": 3, "max_llm_calls": 1, "max_tokens": 150, "max_cost_usd": 0.02, "max_duration_ms": 1500}


@pytest.mark.parametrize(
    ("options", "score"),
    [
        (execution(**JUST), 1.0),
        (execution(**{**JUST, "max_cost_usd": 0.0001}), 0.8),
        (execution(max_tool_calls=2, max_tokens=1000, max_cost_usd=0.01, max_duration_ms=5000), 0.5),
        (execution(max_tool_calls=3, max_input_tokens=1), 1.0),
        (execution(max_tool_calls=0), 0.0),
        (execution(target_exploration_ratio=0.6), 1.0),
        (execution(target_exploration_ratio=0.6, exploration_tolerance=0.01), 0.0),
        (execution(max_tool_calls=3, target_exploration_ratio=0), 0.5),
        (execution(max_input_tokens=10), 0.0),
        (execution(max_output_tokens=10_000), 1.0),
        ({"type": "latency", "threshold": 1500}, 1.0),
        ({"type": "latency", "threshold": 1499}, 0.0),
        ({"type": "cost", "budget": 0.02}, 1.0),
        ({"type": "cost", "budget": 0.019}, 0.0),
        ({"type": "token_usage", "max_total": 170, "max_input": 100, "max_output": 50}, 1.0),
        ({"type": "token_usage", "max_total": 150}, 0.0),
        ({"type": "token_usage", "max_total": 170, "max_input": 99}, 0.0),
    ],
)
async def test_the_share_of_limits_that_are_kept(options: dict[str, Any], score: float, graded: Graded) -> None:
    transcript = called("search", "read", "edit", output="done")
    result = await graded(options, transcript, metrics=METRICS, scoring=AGENTV)
    assert result.score == pytest.approx(score, abs=1e-9)
    assert result.error is None


@pytest.mark.parametrize(
    ("options", "transcript", "kept"),
    [
        (execution(max_tool_calls=5, max_tokens=10, max_cost_usd=1), NO_CALLS, [True, False, False]),
        (execution(max_llm_calls=0), Transcript(output="done"), [False]),
        (execution(max_llm_calls=1), Transcript(output="done"), [True]),
        ({"type": "latency", "threshold": 1e9}, Transcript(), [False]),
        ({"type": "cost", "budget": 1}, Transcript(), [False]),
        ({"type": "token_usage", "max_total": 10}, Transcript(), [False]),
    ],
    ids=["calls are those that are seen", "an answer is a message", "one message", "latency", "cost", "token_usage"],
)
async def test_what_is_unknown_is_not_kept(options: Any, transcript: Transcript, kept: Any, graded: Graded) -> None:
    result = await graded(options, transcript, scoring=AGENTV)
    assert result.score == pytest.approx(sum(kept) / len(kept), abs=1e-9)
    assert ([check.passed for check in result.checks], result.error) == (kept, None)


@pytest.mark.parametrize("options", [execution(), {"type": "token_usage"}], ids=["nothing", "token_usage"])
async def test_no_limit_is_an_error(options: dict[str, Any], graded: Graded) -> None:
    assert "nothing to check" in (await graded(options, metrics=METRICS, scoring=AGENTV)).error


@pytest.mark.parametrize(
    ("calls", "used"),
    [
        (["Bash", ("skill", {"skill": "team:csv-analyzer"})], True),
        (["Bash", ("Read", {"file_path": "/home/skills/csv-analyzer/SKILL.md"})], True),
        ([("Read", {"path": "skills/csv-analyzer/SKILL.md"})], True),
        ([("Read", {"file_path": "csv-analyzer.md"})], False),
        ([ToolCall(tool="Bash", result="found skills/csv-analyzer/SKILL.md")], True),
        ([ToolCall(tool="Bash", result={"files": ["skills/csv-analyzer/SKILL.md"]})], True),
        ([ToolCall(tool="Skill", arguments={"skill": "pdf"}, result="see skills/csv-analyzer/")], True),
        ([("Bash", {"command": "ls skills/csv-analyzer/"})], False),
        ([], False),
    ],
)
@pytest.mark.parametrize("should_trigger", [True, False])
async def test_any_call_counts_as_the_use_of_a_skill_and_what_tools_answered(
    calls: list[Any], used: bool, should_trigger: bool, graded: Graded
) -> None:
    options = {"type": "skill_trigger", "skill": "csv-analyzer", "should_trigger": should_trigger}
    result = await graded(options, called(*calls, complete=False), scoring=AGENTV)
    assert (result.score, result.error) == (float(used == should_trigger), None)
