"""Scores as AgentV computes them where its formula is not that of AgentEvals: for tasks with `compat: agentv`."""

from functools import partial

from passgate.tasks.graders.agentv import answers, judges, trajectories
from passgate.tasks.graders.composites.composite import Ask
from passgate.tasks.graders.interface import GradeFunction
from passgate.tasks.graders.judges.llm_grader import grade_by_judge
from passgate.tasks.graders.programs.code_grader import grade_code
from passgate.tasks.graders.trajectories import trajectory_steps as steps


def agentv_graders(ask: Ask) -> dict[str, GradeFunction]:
    """AgentV's formulas by type of grader. Graders that are made of graders get the grades of these from `ask`."""
    tool_arguments = partial(steps.grade_tool_arguments, fits=trajectories.called_with)
    return {
        "regex": answers.grade_regex_as_agentv,
        "is_json": answers.grade_is_json_as_agentv,
        "code_grader": partial(grade_code, read=judges.read_code_reply_as_agentv),
        "llm_grader": partial(grade_by_judge, read=judges.read_judge_reply_as_agentv),
        "rubrics": judges.grade_rubrics_as_agentv,
        "field_accuracy": answers.grade_fields_as_agentv,
        **dict.fromkeys(("execution_metrics", "latency", "cost", "token_usage"), trajectories.grade_limits_as_agentv),
        "skill_trigger": trajectories.grade_skill_trigger_as_agentv,
        "tool_trajectory": trajectories.grade_tool_trajectory_as_agentv,
        "tool_used": trajectories.of_tools_alone(steps.grade_tool_used),
        "tool_sequence": trajectories.of_tools_alone(steps.grade_tool_sequence),
        "tool_arguments": trajectories.of_tools_alone(tool_arguments),
        "step_count": trajectories.grade_step_count_as_agentv,
        "composite": partial(judges.grade_composite_as_agentv, ask),
        "turns": partial(judges.grade_turns_as_agentv, ask),
    }
