"""`trajectory:*` assertions as AgentV scores them, and what passgate says where it does not ask for that."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from passgate.tasks.graders import grade
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.task import Scoring
from passgate.tasks.model.transcript import Transcript
from tests.unit.graders.trajectories.called import CALLS, Called, MakeEvidence

Compare = Callable[..., Any]


@pytest.fixture
def compare(make_evidence: MakeEvidence) -> Compare:
    """AgentV's score and passgate's own."""

    async def both(transcript: Transcript, **fields: Any) -> tuple[float | None, float | None]:
        options: Grader = TypeAdapter(Grader).validate_python(fields)
        theirs = make_evidence(transcript=transcript, scoring=Scoring(compat="agentv"))
        ours = make_evidence(transcript=transcript)
        return (await grade(options, theirs)).score, (await grade(options, ours)).score

    return both


@pytest.mark.parametrize(
    ("fields", "theirs", "ours"),
    [
        ({"tools": ["search"]}, 1, 1),
        ({"tools": ["search", "missing"]}, 0, 0),
        ({"tools": ["search"], "min": 2, "max": 2}, 1, 1),
        ({"tools": ["sea*"]}, 1, 1),
        ({"tools": ["SEARCH"]}, 1, 1),
        ({"tools": ["read"], "negate": True}, 0, 0),
        ({"tools": ["delete_file"], "negate": True}, 1, 1),
        ({"tools": ["shell"], "negate": True}, 1, 0),
        ({"tools": ["exec_command"], "negate": True}, 1, 0),
        ({"tools": ["Bash"], "negate": True}, 0, 0),
        ({"tools": ["shell"]}, 0, 1),
        ({"tools": ["read"], "min": 0, "max": 0}, 0, 0),
        ({"tools": ["read", "delete_file"], "negate": True}, 0, 0),
    ],
)
async def test_tools_used_and_the_shells_that_are_not_seen(
    fields: dict[str, Any], theirs: float, ours: float, compare: Compare, called: Called
) -> None:
    assert await compare(called(*CALLS), type="tool_used", **fields) == (theirs, ours)


@pytest.mark.parametrize(
    ("fields", "theirs", "ours"),
    [
        ({"steps": ["search", "read", "search"]}, 1, 1),
        ({"steps": ["search", "read", "Bash", "search"], "mode": "exact"}, 1, 0),
        ({"steps": ["read", "read"]}, 0, 0),
        ({"steps": ["read", "shell"]}, 0, 1),
    ],
)
async def test_the_order_of_tools(
    fields: dict[str, Any], theirs: float, ours: float, compare: Compare, called: Called
) -> None:
    assert await compare(called(*CALLS), type="tool_sequence", **fields) == (theirs, ours)


@pytest.mark.parametrize(
    ("fields", "theirs", "ours"),
    [
        ({"tool": "search", "args": {"q": "b"}}, 1, 1),
        ({"tool": "search", "args": {"q": "b"}, "mode": "exact"}, 0, 0),
        ({"tool": "search", "args": {"q": "b"}, "mode": "exact", "ignore": ["limit"]}, 1, 1),
        ({"tool": "search", "args": {"q": "b"}, "mode": "exact", "defaults": {"limit": 5}}, 1, 1),
        ({"tool": "search", "args": {"q": "b", "limit": 5}, "defaults": {"limit": 5}}, 0, 1),
        ({"tool": "shell", "args": {"command": "rm -rf /"}, "negate": True}, 1, 0),
    ],
)
async def test_the_arguments_of_a_tool(
    fields: dict[str, Any], theirs: float, ours: float, compare: Compare, called: Called
) -> None:
    assert await compare(called(*CALLS), type="tool_arguments", **fields) == (theirs, ours)


@pytest.mark.parametrize(
    ("fields", "theirs", "ours"),
    [
        ({"kind": "tool", "max": 4}, 1, 0),
        ({"kind": "command", "min": 2, "max": 2}, 1, 0),
        ({"kind": "command", "min": 3, "max": 3}, 0, 1),
        ({"kind": "command", "pattern": "curl", "min": 1}, 1, 1),
        ({"min": 6, "max": 6}, 1, 1),
    ],
)
async def test_the_number_of_steps(
    fields: dict[str, Any], theirs: float, ours: float, compare: Compare, called: Called
) -> None:
    assert await compare(called(*CALLS), type="step_count", **fields) == (theirs, ours)


async def test_a_shell_without_a_command_is_a_tool(compare: Compare, called: Called) -> None:
    assert await compare(called("shell"), type="tool_used", tools=["shell"]) == (1, 1)
    assert await compare(called("shell"), type="step_count", kind="tool", min=1) == (1, 1)


async def test_an_agent_that_only_prints_text_has_made_no_calls(compare: Compare) -> None:
    text = Transcript(output="no tools", complete=False)
    assert await compare(text, type="tool_used", tools=["search"]) == (0, None)
    assert await compare(text, type="tool_used", tools=["search"], negate=True) == (1, None)
