"""Graders for each turn of a conversation, as AgentV scores them."""

from collections.abc import Sequence

from passgate.tasks.graders.composites.composite import Ask, grade_composite
from passgate.tasks.graders.composites.turns import as_composite, grade_parts
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Grader, Turns


async def grade_turns_as_agentv(ask: Ask, options: Turns, evidence: Evidence) -> Grade:
    """As `grade_turns`, but a turn without graders has 1, and what is required in a turn makes that turn 0 and does not
    fail the rest.
    """

    async def grade_part(name: str, assertions: Sequence[Grader], of_part: Evidence) -> Grade:
        if not assertions:
            return Grade(name=name, type="composite", score=1.0, passed=True)
        grade = await grade_composite(ask, as_composite(name, assertions), of_part)
        return grade.model_copy(update={"score": 0.0, "fatal": ""}) if grade.fatal else grade

    return await grade_parts(options, dict(enumerate(options.turns, start=1)), evidence, grade_part)
