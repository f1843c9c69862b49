"""Scores as AgentV computes them, where its formula is not that of AgentEvals: for tasks with `compat: agentv`."""

from functools import partial

from passgate.tasks.graders.agentv.answers import (
    grade_fields_as_agentv,
    grade_is_json_as_agentv,
    grade_regex_as_agentv,
)
from passgate.tasks.graders.agentv.judges import (
    grade_composite_as_agentv,
    grade_rubrics_as_agentv,
    grade_turns_as_agentv,
    read_code_reply_as_agentv,
    read_judge_reply_as_agentv,
)
from passgate.tasks.graders.agentv.trajectories import (
    called_with_as_agentv,
    grade_limits_as_agentv,
    grade_skill_trigger_as_agentv,
    grade_step_count_as_agentv,
    grade_tool_trajectory_as_agentv,
    of_tools_alone,
)
from passgate.tasks.graders.composites.composite import Ask
from passgate.tasks.graders.interface import GradeFunction
from passgate.tasks.graders.judges.llm_grader import grade_by_judge
from passgate.tasks.graders.programs.code_grader import grade_code
from passgate.tasks.graders.trajectories.trajectory_steps import (
    grade_tool_arguments,
    grade_tool_sequence,
    grade_tool_used,
)


def agentv_graders(ask: Ask) -> dict[str, GradeFunction]:
    """AgentV's formulas by type of grader; those that are made of graders ask for their grades by `ask`."""
    return {
        "regex": grade_regex_as_agentv,
        "is_json": grade_is_json_as_agentv,
        "code_grader": partial(grade_code, read=read_code_reply_as_agentv),
        "llm_grader": partial(grade_by_judge, read=read_judge_reply_as_agentv),
        "rubrics": grade_rubrics_as_agentv,
        "field_accuracy": grade_fields_as_agentv,
        "execution_metrics": grade_limits_as_agentv,
        "latency": grade_limits_as_agentv,
        "cost": grade_limits_as_agentv,
        "token_usage": grade_limits_as_agentv,
        "skill_trigger": grade_skill_trigger_as_agentv,
        "tool_trajectory": grade_tool_trajectory_as_agentv,
        "tool_used": of_tools_alone(grade_tool_used),
        "tool_sequence": of_tools_alone(grade_tool_sequence),
        "tool_arguments": of_tools_alone(partial(grade_tool_arguments, fits=called_with_as_agentv)),
        "step_count": grade_step_count_as_agentv,
        "composite": partial(grade_composite_as_agentv, ask),
        "turns": partial(grade_turns_as_agentv, ask),
    }
