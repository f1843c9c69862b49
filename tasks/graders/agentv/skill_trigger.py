"""The use of a skill as AgentV finds it: in any call that the transcript holds, and in what tools answered."""

import json

from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.trajectories.limits import made_calls
from passgate.tasks.graders.trajectories.trajectory_steps import read_path, skill_grade
from passgate.tasks.model.assertions import SkillTrigger
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.transcript import ToolCall


async def grade_skill_trigger_as_agentv(options: SkillTrigger, evidence: Evidence) -> Grade:
    """1 when the skill was used, or was not, as wanted, else 0."""
    use = next((call for call in made_calls(evidence) if _uses(call, options.skill)), None)
    return skill_grade(options, use, where="any call or result")


def _uses(call: ToolCall, skill: str) -> bool:
    folder = f"skills/{skill}/"
    if call.tool.lower() == "skill" and skill in str(call.arguments.get("skill", "")):
        return True
    if call.tool.lower() == "read" and folder in read_path(call):
        return True
    return call.result is not None and folder in _text(call.result)


def _text(result: object) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
