from typing import Any

import pytest

from passgate.tasks.model.assertions import SkillTrigger
from passgate.tasks.model.transcript import Message, ToolCall, Transcript
from tests.unit.graders.trials import Graded, called

SKILL = ("Skill", {"skill": "team:csv-analyzer"})
READ = ("Read", {"file_path": ".claude/skills/csv-analyzer/SKILL.md"})
OTHER = ("Bash", {"command": "cat skills/csv-analyzer/SKILL.md"})


def options(**fields: Any) -> SkillTrigger:
    return SkillTrigger(type="skill_trigger", skill="csv-analyzer", **fields)


@pytest.mark.parametrize(
    ("calls", "first", "any_call"),
    [
        ([SKILL], 1.0, 1.0),
        ([READ], 1.0, 1.0),
        ([("read", {"path": "csv-analyzer.md"})], 1.0, 1.0),
        ([OTHER, SKILL], 0.0, 1.0),
        ([OTHER], 0.0, 0.0),
        ([("Skill", {"skill": "csv"}), ("Skill", {})], 0.0, 0.0),
        ([("Skill", {"file_path": "csv-analyzer"})], 0.0, 0.0),
        ([("Read", {"file_path": None})], 0.0, 0.0),
        ([], 0.0, 0.0),
    ],
)
async def test_which_call_counts(calls: list[Any], first: float, any_call: float, graded: Graded) -> None:
    transcript = called(*calls)
    assert (await graded(options(), transcript)).score == first
    assert (await graded(options(any_call=True), transcript)).score == any_call
    assert (await graded(options(should_trigger=False), transcript)).score == 1 - first
    assert (await graded(options(should_trigger=False, any_call=True), transcript)).score == 1 - any_call


async def test_a_refused_call_is_no_use(graded: Graded) -> None:
    calls = (ToolCall(tool="Skill", arguments={"skill": "csv-analyzer"}, refused=True), ToolCall(tool="Bash"))
    result = await graded(options(any_call=True), Transcript(messages=(Message(role="assistant", tool_calls=calls),)))
    assert result.score == 0.0
    assert result.checks[0].message == "the skill 'csv-analyzer' is not used in any call, but must be"


@pytest.mark.parametrize("should_trigger", [True, False])
async def test_calls_that_are_not_known_are_an_error(should_trigger: bool, graded: Graded) -> None:
    result = await graded(options(should_trigger=should_trigger), called(SKILL, complete=False))
    assert result.error


async def test_a_known_use_settles_it(graded: Graded) -> None:
    result = await graded(options(should_trigger=False, any_call=True), called(OTHER, SKILL, complete=False))
    assert (result.score, result.error) == (0.0, None)
    assert (
        result.checks[0].message
        == 'Skill({"skill": "team:csv-analyzer"}) uses the skill \'csv-analyzer\', but must not'
    )
