from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import SkillTrigger
from passgate.tasks.model.transcript import Message, ToolCall, Transcript

BASH = ToolCall(tool="Bash")


@pytest.mark.parametrize(
    ("calls", "used"),
    [
        ((BASH, ToolCall(tool="skill", arguments={"skill": "team:csv-analyzer"})), True),
        ((BASH, ToolCall(tool="Read", arguments={"file_path": "/home/skills/csv-analyzer/SKILL.md"})), True),
        ((ToolCall(tool="Read", arguments={"path": "skills/csv-analyzer/SKILL.md"}),), True),
        ((ToolCall(tool="Read", arguments={"file_path": "csv-analyzer.md"}),), False),
        ((ToolCall(tool="Bash", result="found skills/csv-analyzer/SKILL.md"),), True),
        ((ToolCall(tool="Bash", result={"files": ["skills/csv-analyzer/SKILL.md"]}),), True),
        ((ToolCall(tool="Skill", arguments={"skill": "pdf"}, result="see skills/csv-analyzer/"),), True),
        ((ToolCall(tool="Bash", arguments={"command": "ls skills/csv-analyzer/"}),), False),
        ((), False),
    ],
)
@pytest.mark.parametrize("should_trigger", [True, False])
async def test_any_call_counts_and_what_tools_answered(
    calls: tuple[ToolCall, ...], used: bool, should_trigger: bool, agentv_evidence: Callable[..., Evidence]
) -> None:
    transcript = Transcript(messages=(Message(role="assistant", tool_calls=calls),), complete=False)
    options: Any = SkillTrigger(type="skill_trigger", skill="csv-analyzer", should_trigger=should_trigger)
    result = await grade(options, agentv_evidence(transcript=transcript))
    assert (result.score, result.error) == (float(used == should_trigger), None)
