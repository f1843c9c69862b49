"""Who owns the order and the rounds of a run: the planned trials, then those that confirm what has failed."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import count, islice

from passgate.tasks.agents.starts import Starts
from passgate.tasks.execution.batches import batches_of, confirming_batches
from passgate.tasks.execution.run_state import RunState
from passgate.tasks.execution.scheduler import TrialKey
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.gates.evidence import wanted_trials
from passgate.tasks.gates.exemptions import exemptions
from passgate.tasks.gates.suite_evidence import wanted_of_suites
from passgate.tasks.history.journal import Journal
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Batch, BatchOutcome, Plan
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import FinishedTrial, Trial
from passgate.tasks.model.verdict import Decision
from passgate.tasks.planning.baseline import Pool
from passgate.tasks.planning.order import run_order
from passgate.tasks.stats.measurement import measurement_of


@dataclass(frozen=True)
class Round:
    """Batches that may run side by side, and the order in which their trials begin as far as they can."""

    batches: tuple[Batch, ...]
    order: tuple[TrialKey, ...] = ()


Executor = Callable[[Round, Callable[[BatchOutcome], None]], Awaitable[None]]
"""Runs the batches of a round, wherever that is, and passes on the outcome of each as it ends. A batch may have several
outcomes, one for each time that it is handed out."""


@dataclass(frozen=True)
class Coordinated:
    """What a run has come to."""

    trials: tuple[Trial, ...]  # Every trial that has finished, those of before it was resumed included
    warnings: tuple[str, ...] = ()  # What went wrong that no trial depends on


OpenExecutor = Callable[[Plan, RunStore, Journal, Sequence[FinishedTrial]], AbstractAsyncContextManager[Executor]]
"""Opens an executor for a plan, where it is kept, its open journal, and the trials of it that have finished before."""


async def coordinate(
    plan: Plan, pool: Pool, finished: Sequence[FinishedTrial], execute: Executor, plan_digest: str | None = None
) -> Coordinated:
    """Run every trial of a plan that has not finished and that can still matter, confirming ones included.

    Batches that run elsewhere run by the plan with a digest. Raises `UsageError` when no trial could be started.
    """
    before = [one.trial for one in finished]
    run_state, starts, warnings = RunState(before), Starts(), dict[str, None]()
    starts.resume(finished)

    def ended(outcome: BatchOutcome) -> None:
        for trial in outcome.trials:
            run_state.add(trial)
        starts.add_outcome(outcome)
        warnings.update(dict.fromkeys(outcome.warnings))

    def confirming() -> Round:
        trials = run_state.finished
        return Round(_by_plan(confirming_batches(confirming_trials(plan, trials, pool(trials))), plan_digest))

    order = tuple(key for key in run_order(plan.tasks, pool(before)) if not run_state.has(key))
    # A round without an order has none to keep: it would be run whole. A resumed run may lack confirming trials alone.
    current = Round(_by_plan(batches_of(plan.tasks), plan_digest), order) if order else confirming()
    while current.batches:
        await execute(current, ended)
        starts.refuse_wrong_command()
        current = confirming()
    return Coordinated(tuple(run_state.finished), tuple(warnings))


def _by_plan(batches: Sequence[Batch], plan_digest: str | None) -> tuple[Batch, ...]:
    return tuple(batch.model_copy(update={"plan_digest": plan_digest}) for batch in batches)


def confirming_trials(plan: Plan, trials: Sequence[Trial], baseline: Baseline) -> list[tuple[EvalTask, list[int]]]:
    """The tasks that get confirming trials, each with the numbers of those that can be run at once; none when every
    failure is decided, or the gate is FAIL whatever they would show. Tasks that may not block get none.
    """
    policy, measurement = plan.gate_policy, measurement_of(plan.tasks, trials)
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
