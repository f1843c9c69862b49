"""Graders: what the agent said, did and left behind in; a score, a pass and the evidence for both out."""

from collections.abc import Awaitable, Callable
from typing import Any

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import settled, unmeasured
from passgate.tasks.graders.forbidden import forbidden_by
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.llm_rubric import grade_rubric, judge_request
from passgate.tasks.graders.output_check import grade_output
from passgate.tasks.graders.policy_check import grade_policy
from passgate.tasks.graders.state_check import grade_state
from passgate.tasks.graders.static_analysis import grade_static_analysis
from passgate.tasks.graders.tests import grade_tests
from passgate.tasks.graders.texts import shorten
from passgate.tasks.graders.tool_calls import grade_tool_calls
from passgate.tasks.graders.trajectory_metrics import grade_trajectory
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.graders import Grader

__all__ = ["AGENTV_GRADERS", "GRADERS", "Evidence", "forbidden_by", "grade", "judge_request"]

GradeFunction = Callable[[Any, Evidence], Awaitable[Grade]]
"""Computes the bare grade of one kind of grader."""


async def grade(options: Grader, evidence: Evidence) -> Grade:
    """One grader's answer for one trial. Whatever goes wrong in a grader is the grade's `error`."""
    graders = AGENTV_GRADERS if evidence.task.scoring.compat == "agentv" else GRADERS
    try:
        bare = await graders[options.type](options, evidence)
    except MeasurementError as error:
        return unmeasured(options, str(error), transient=error.transient)
    except Exception as error:  # noqa: BLE001 - a bug of one grader must not take the run with it
        return unmeasured(options, f"the grader raised {type(error).__name__}: {shorten(str(error), 500)}")
    return settled(options, bare) if isinstance(options, AssertionOptions) else bare


GRADERS: dict[str, GradeFunction] = {
    "deterministic_tests": grade_tests,
    "static_analysis": grade_static_analysis,
    "state_check": grade_state,
    "tool_calls": grade_tool_calls,
    "trajectory_metrics": grade_trajectory,
    "policy_check": grade_policy,
    "output_check": grade_output,
    "llm_rubric": grade_rubric,
}

AGENTV_GRADERS: dict[str, GradeFunction] = {
    **GRADERS,
}
"""For tasks with `compat: agentv`: where AgentV computes a score differently."""
