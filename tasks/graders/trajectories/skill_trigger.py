"""Whether the agent used a skill."""

from collections.abc import Iterable

from passgate.tasks.graders.checks import expectation, scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.tool_calls import shown
from passgate.tasks.graders.trajectories.execution_limits import made_calls
from passgate.tasks.graders.unreported import UNKNOWN_CALLS, UnreportedError
from passgate.tasks.model.assertions import SkillTrigger
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.transcript import ToolCall


async def grade_skill_trigger(options: SkillTrigger, evidence: Evidence) -> Grade:
    """1 when the skill was used, or was not, as wanted, else 0.

    The first tool call counts, and with `any_call` every one: a call of `Skill` with the skill's name in its argument
    `skill`, or of `Read` with the name in its `file_path`. Raises `MeasurementError` when the transcript does not hold
    every call, unless those that it holds settle it.
    """
    calls = made_calls(evidence)
    use = first_use(calls if options.any_call else calls[:1], options)
    is_settled = options.any_call and use is not None
    if not evidence.transcript.complete and not is_settled:
        raise UnreportedError(UNKNOWN_CALLS)
    return skill_grade(options, use, where="any call" if options.any_call else "the first call")


def first_use(calls: Iterable[ToolCall], options: SkillTrigger) -> ToolCall | None:
    """The first call that uses the skill."""
    return next((call for call in calls if _uses(call, options.skill)), None)


def _uses(call: ToolCall, skill: str) -> bool:
    match call.tool.lower():
        case "skill":
            return skill in str(call.arguments.get("skill", ""))
        case "read":
            return skill in read_path(call)
    return False


def read_path(call: ToolCall) -> str:
    """The path that a call of `Read` reads."""
    path = call.arguments.get("file_path")
    return str(call.arguments.get("path", "") if path is None else path)


def skill_grade(options: SkillTrigger, use: ToolCall | None, *, where: str) -> Grade:
    """The grade when this call uses the skill, or none does."""
    name = repr(options.skill)
    found = f"the skill {name} is not used in {where}" if use is None else f"{shown(use)} uses the skill {name}"
    passed = (use is not None) == options.should_trigger
    met = passed is not options.negate
    message = f"{found}{expectation(passed=met, must='be' if use is None else 'not')}"
    return scored(options, float(passed), [Check(passed=met, message=message)])
