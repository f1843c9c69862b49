"""Run a plan in rounds: the planned trials first, then confirming trials for failed tasks."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import count, islice
from typing import Protocol

from passgate.tasks.execution.batches import batches_of, confirming_batches
from passgate.tasks.execution.run_state import RunState
from passgate.tasks.execution.scheduler import TrialKey
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.gates.evidence import wanted_trials
from passgate.tasks.gates.exemptions import exemptions
from passgate.tasks.gates.suite_evidence import wanted_of_suites
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Batch, Plan
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import Decision
from passgate.tasks.planning.baseline import Pool
from passgate.tasks.planning.order import run_order
from passgate.tasks.stats.measurement import measurement_of


@dataclass(frozen=True)
class Round:
    """Batches that may run side by side, and the order in which their trials begin as far as they can."""

    batches: tuple[Batch, ...]
    order: tuple[TrialKey, ...] = ()


class Executor(Protocol):
    """Runs trials, in this process or elsewhere."""

    async def run(self, current: Round) -> None:
        """Run what is missing of a round, and record each trial in the state of the run."""


OpenExecutor = Callable[[Plan, RunStore, RunState], AbstractAsyncContextManager[Executor]]
"""Opens an executor for a plan, given where the run is kept and its state."""


async def coordinate(plan: Plan, pool: Pool, run_state: RunState, executor: Executor) -> None:
    """Run a plan in rounds: the planned trials first, then confirming trials for failed tasks.

    Only trials that were not measured yet and that can still matter are run. Raises `UsageError` when no trial could be
    started.
    """

    def confirming() -> Round:
        trials = run_state.finished
        return Round(confirming_batches(confirming_trials(plan, trials, pool(trials))))

    order = tuple(key for key in run_order(plan.tasks, pool(run_state.finished)) if not run_state.has(key))
    # A round without an order has none to keep: it would be run whole. A resumed run may lack confirming trials alone.
    current = Round(batches_of(plan.tasks), order) if order else confirming()
    while current.batches:
        await executor.run(current)
        if run_state.starts is not None:
            run_state.starts.refuse_wrong_command()
        current = confirming()


def confirming_trials(plan: Plan, trials: Sequence[Trial], baseline: Baseline) -> list[tuple[EvalTask, list[int]]]:
    """Return the tasks that get confirming trials, each with the numbers of those that can run at once; none when every
    failure is decided, or the gate is FAIL whatever they would show. Tasks that may not block get none.
    """
    policy, measurement = plan.gate_policy, measurement_of(plan.tasks, trials, baseline.repeated_trials)
    if rule_on(plan, policy, measurement, baseline).decision is Decision.FAIL:
        return []
    exempt = exemptions(policy, plan.quarantine, measurement, baseline, plan.created_at.date())
    wanted = wanted_trials(policy, measurement, baseline, exempt.settled)
    if not wanted:
        # Suites come last: what single tasks have shown may decide the gate, and their trials count for the suite too.
        wanted = wanted_of_suites(policy, measurement, baseline, exempt.settled)
    tasks = {task.name: task for task in plan.tasks}
    taken = defaultdict[str, set[int]](set)
    for trial in trials:
        taken[trial.task_id].add(trial.trial)
    return [
        (tasks[one.task], _free_numbers(tasks[one.task], taken[tasks[one.task].task_id], one.trials)) for one in wanted
    ]


def _free_numbers(task: EvalTask, taken: Collection[int], wanted: int) -> list[int]:
    """So many numbers from k on that no trial has: a run that was cut off may have left gaps."""
    return list(islice((number for number in count(task.k) if number not in taken), wanted))
