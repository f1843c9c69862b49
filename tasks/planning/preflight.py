"""Graders that cannot fail: a run that would prove nothing is refused before it begins."""

from collections.abc import Sequence
from typing import Final

from passgate.tasks.errors import InputError, Problem
from passgate.tasks.formats.loading import grader_problem
from passgate.tasks.model.policy import GatePolicy, Policy, Rule
from passgate.tasks.model.task import EvalTask

BLOCKING: Final = frozenset(
    {
        Rule.SAFETY_VIOLATION,
        Rule.FORBIDDEN_TOOL,
        Rule.GOLDEN_REGRESSION,
        Rule.TASK_FAILED,
        Rule.SUITE_REGRESSION,
        Rule.THRESHOLD,
    }
)  # The rules by which a task that fails makes its gate fail


def refuse_graders_that_cannot_fail(tasks: Sequence[EvalTask], policy: GatePolicy) -> None:
    """Raise `InputError` with every grader of these tasks that cannot fail, where a task that fails blocks the gate."""
    problems = problems_of(tasks, policy)
    if problems:
        raise InputError(problems)


def problems_of(tasks: Sequence[EvalTask], policy: GatePolicy) -> list[Problem]:
    """Return a problem for every grader that cannot fail, with why and what to do; none where no failed task blocks."""
    # The graders take a while to import, and what only reads files needs none of them.
    from passgate.tasks.graders.vacuous import graders_that_cannot_fail

    if not BLOCKING.intersection(policy.blocks_on):
        return []
    return [
        grader_problem(task, found.place, f"{_subject(task, found.place)} cannot fail: {found.why}; {found.remedy}")
        for task in tasks
        for found in graders_that_cannot_fail(task)
    ]


def warnings_of(tasks: Sequence[EvalTask]) -> list[Problem]:
    """Return what an agent that does not do the work would pass: worth knowing, and no reason to refuse a task."""
    from passgate.tasks.graders.vacuous import graders_that_ask_too_little

    return [
        grader_problem(task, found.place, f"{_subject(task, found.place)} asks too little: {found.why}; {found.remedy}")
        for task in tasks
        for found in graders_that_ask_too_little(task)
    ]


def problems_at_gates(tasks: Sequence[EvalTask], policy: Policy) -> list[Problem]:
    """Return the same for the tasks of every gate of a policy, each problem once."""
    found = (problems_of(policy.gate_tasks(gate, tasks), gate_policy) for gate, gate_policy in policy.gates.items())
    return list(dict.fromkeys(problem for problems in found for problem in problems))


def _subject(task: EvalTask, place: int | None) -> str:
    return "this task" if place is None else f"the grader {task.graders[place].label!r}"
