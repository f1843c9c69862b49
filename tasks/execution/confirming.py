"""The confirming trials that the gate wants next."""

from collections.abc import Sequence
from itertools import count, islice

from passgate.tasks.gates.evidence import wanted_trials
from passgate.tasks.gates.exemptions import exemptions
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import Trial
from passgate.tasks.stats.measurement import measurement_of


def confirming_trials(plan: Plan, trials: Sequence[Trial], baseline: Baseline) -> list[tuple[EvalTask, list[int]]]:
    """The tasks that get confirming trials, each with the numbers of those that can be run at once; none when every
    failure is decided. Tasks that may not block get none.
    """
    policy, measurement = plan.gate_policy, measurement_of(plan.tasks, trials)
    exempt = exemptions(policy, plan.quarantine, measurement, baseline, plan.created_at.date())
    tasks = {task.name: task for task in plan.tasks}
    return [
        (tasks[wanted.task], _free_numbers(tasks[wanted.task], trials, wanted.trials))
        for wanted in wanted_trials(policy, measurement, baseline, exempt.tasks)
    ]


def _free_numbers(task: EvalTask, trials: Sequence[Trial], wanted: int) -> list[int]:
    """So many numbers from k on that no trial has: a run that was cut off may have left gaps."""
    taken = {trial.trial for trial in trials if trial.task_id == task.task_id}
    return list(islice((number for number in count(task.k) if number not in taken), wanted))
