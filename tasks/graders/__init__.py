"""Graders: what the agent said, did and left behind in; a score, a pass and the evidence for both out."""

from dataclasses import replace
from functools import partial

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers import assertions, fields
from passgate.tasks.graders.checks import rendered, settled, unmeasured
from passgate.tasks.graders.composites.composite import grade_composite
from passgate.tasks.graders.composites.turns import grade_turns
from passgate.tasks.graders.evidence import Evidence, GradeFunction, UnreportedError, remedy_for
from passgate.tasks.graders.judges.llm_grader import grade_by_judge
from passgate.tasks.graders.judges.rubric import grade_rubric, grade_rubrics
from passgate.tasks.graders.max_length import grade_max_length
from passgate.tasks.graders.policy_check import forbidden_by, grade_policy
from passgate.tasks.graders.programs.code_grader import grade_code, grade_script
from passgate.tasks.graders.state_check import grade_state
from passgate.tasks.graders.static_analysis import grade_static_analysis
from passgate.tasks.graders.tests import grade_tests
from passgate.tasks.graders.tool_calls import grade_tool_calls
from passgate.tasks.graders.trajectories import limits, tool_trajectory, trajectory_steps
from passgate.tasks.model.assertions import AssertionOptions, Unavailable
from passgate.tasks.model.grade import Grade, RawGrade
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.quotes import quote, raw

__all__ = ["GRADERS", "Evidence", "forbidden_by", "grade"]


async def grade(options: Grader, evidence: Evidence) -> Grade:
    """One grader's answer for one trial. Whatever goes wrong in a grader is the grade's `error`."""
    return rendered(await _answer(options, evidence), evidence.masker)


async def _answer(options: Grader, evidence: Evidence) -> RawGrade:
    evidence = replace(evidence, sandbox=evidence.sandbox.for_a_grader)
    try:
        bare = await GRADERS[options.type](options, evidence)
    except UnreportedError as error:
        return unmeasured(options, raw(error.message, f". {remedy_for(evidence.agent_kind)}"))
    except MeasurementError as error:
        return unmeasured(options, error.message, transient=error.transient)
    except Exception as error:  # noqa: BLE001 - a bug of one grader must not take the run with it
        return unmeasured(options, raw(f"the grader raised {type(error).__name__}: ", quote(str(error), 500)))
    return settled(options, bare) if isinstance(options, AssertionOptions) else bare


async def grade_unavailable(options: Unavailable, evidence: Evidence) -> RawGrade:
    """Raises `MeasurementError`: what nobody can measure is neither passed nor failed."""
    raise MeasurementError(f"passgate has no grader {options.kind!r}")


GRADERS: dict[str, GradeFunction] = {
    "deterministic_tests": grade_tests,
    "static_analysis": grade_static_analysis,
    "state_check": grade_state,
    "tool_calls": grade_tool_calls,
    "trajectory_metrics": limits.grade_trajectory,
    "policy_check": grade_policy,
    "output_check": assertions.grade_output,
    "max_length": grade_max_length,
    "llm_rubric": grade_rubric,
    **dict.fromkeys(("contains", "contains_any", "contains_all"), assertions.grade_text),
    **dict.fromkeys(("icontains", "icontains_any", "icontains_all", "starts_with", "ends_with"), assertions.grade_text),
    "equals": assertions.grade_equals,
    "regex": assertions.grade_regex,
    "is_json": assertions.grade_is_json,
    "code_grader": grade_code,
    "javascript": grade_script,
    "python": grade_script,
    "llm_grader": grade_by_judge,
    "rubrics": grade_rubrics,
    "field_accuracy": fields.grade_fields,
    **dict.fromkeys(("execution_metrics", "latency", "cost", "token_usage"), limits.grade_execution_limits),
    "skill_trigger": trajectory_steps.grade_skill_trigger,
    "tool_trajectory": tool_trajectory.grade_tool_trajectory,
    "tool_used": trajectory_steps.grade_tool_used,
    "tool_sequence": trajectory_steps.grade_tool_sequence,
    "tool_arguments": trajectory_steps.grade_tool_arguments,
    "step_count": trajectory_steps.grade_step_count,
    "composite": partial(grade_composite, _answer),
    "turns": partial(grade_turns, _answer),
    "unavailable": grade_unavailable,
}
