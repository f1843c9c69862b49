"""Graders: what the agent said, did and left behind in; a score, a pass and the evidence for both out."""

from dataclasses import replace
from importlib import import_module
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import rendered, settled, unmeasured
from passgate.tasks.graders.evidence import Evidence, GradeFunction, UnreportedError, remedy_for
from passgate.tasks.model.grade import Grade, RawGrade
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.quotes import quote, raw

GRADERS: Final = {
    "deterministic_tests": "tests.grade_tests",
    "static_analysis": "static_analysis.grade_static_analysis",
    "state_check": "state_check.grade_state",
    "tool_calls": "tool_calls.grade_tool_calls",
    "trajectory_metrics": "trajectories.limits.grade_trajectory",
    "policy_check": "policy_check.grade_policy",
    "output_check": "answers.assertions.grade_output",
    "max_length": "max_length.grade_max_length",
    "llm_rubric": "judges.rubric.grade_rubric",
    **dict.fromkeys(("contains", "contains_any", "contains_all"), "answers.assertions.grade_text"),
    **dict.fromkeys(("icontains", "icontains_any", "icontains_all"), "answers.assertions.grade_text"),
    **dict.fromkeys(("starts_with", "ends_with"), "answers.assertions.grade_text"),
    "equals": "answers.assertions.grade_equals",
    "regex": "answers.assertions.grade_regex",
    "is_json": "answers.assertions.grade_is_json",
    "code_grader": "programs.code_grader.grade_code",
    **dict.fromkeys(("javascript", "python"), "programs.code_grader.grade_script"),
    "llm_grader": "judges.llm_grader.grade_by_judge",
    "rubrics": "judges.rubric.grade_rubrics",
    "field_accuracy": "answers.fields.grade_fields",
    **dict.fromkeys(
        ("execution_metrics", "latency", "cost", "token_usage"), "trajectories.limits.grade_execution_limits"
    ),
    "skill_trigger": "trajectories.trajectory_steps.grade_skill_trigger",
    "tool_trajectory": "trajectories.tool_trajectory.grade_tool_trajectory",
    "tool_used": "trajectories.trajectory_steps.grade_tool_used",
    "tool_sequence": "trajectories.trajectory_steps.grade_tool_sequence",
    "tool_arguments": "trajectories.trajectory_steps.grade_tool_arguments",
    "step_count": "trajectories.trajectory_steps.grade_step_count",
    "composite": "composites.composite.grade_composite",
    "turns": "composites.turns.grade_turns",
    "unavailable": "checks.grade_unavailable",
}
"""The function of every type of grader: its module is imported when a task uses it."""


async def grade(options: Grader, evidence: Evidence) -> Grade:
    """Return one grader's answer for one trial. Whatever goes wrong in a grader is the grade's `error`."""
    return rendered(await raw_grade(options, evidence), evidence.masker)


async def raw_grade(options: Grader, evidence: Evidence) -> RawGrade:
    """Return the same with its secrets, for graders that are made of others."""
    evidence = replace(evidence, sandbox=evidence.sandbox.for_a_grader)
    try:
        bare = await grade_function(options.type)(options, evidence)
    except UnreportedError as error:
        return unmeasured(options, raw(error.message, f". {remedy_for(evidence.agent_kind)}"))
    except MeasurementError as error:
        return unmeasured(options, error.message, transient=error.transient)
    except Exception as error:  # noqa: BLE001 - a bug of one grader must not take the run with it
        return unmeasured(options, raw(f"the grader raised {type(error).__name__}: ", quote(str(error), 500)))
    return settled(options, bare) if isinstance(options, AssertionOptions) else bare


def grade_function(kind: str) -> GradeFunction:
    """Return the function of a type of grader."""
    module, _, name = GRADERS[kind].rpartition(".")
    function: GradeFunction = getattr(import_module(f"{__name__}.{module}"), name)
    return function
