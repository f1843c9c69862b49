"""Run a plan in rounds: its state, and which trials run next, in which batches and in which order."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import IntEnum
from itertools import count, islice
from statistics import fmean
from typing import Final, Protocol

from passgate.tasks.agents.starts import Starts
from passgate.tasks.execution.scheduler import TrialKey
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.gates.evidence import wanted_of_suites, wanted_trials
from passgate.tasks.gates.guards import exemptions, needless
from passgate.tasks.history.journal import TrialWriter
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask, all_figures
from passgate.tasks.model.run import Batch, Plan
from passgate.tasks.model.task import EvalTask, guards_safety
from passgate.tasks.model.trial import MEASURED, FinishedTrial, Trial
from passgate.tasks.model.verdict import Decision
from passgate.tasks.planning.baseline import Pool
from passgate.tasks.stats.measurement import measure_trials

MOST_BATCHES: Final = 32  # Prefect task runs cost time on its server, so tasks share them once there are many


class RunState:
    """What the trials of a run have come to so far, including those that ended before it was resumed."""

    def __init__(
        self,
        before: Iterable[Trial] = (),
        *,
        plan: Plan | None = None,
        journal: TrialWriter | None = None,
        starts: Starts | None = None,
    ) -> None:
        """Begin with the trials `before`. Without a plan no trial is needless. `starts` counts agents that could not
        start, if these stop the run.
        """
        self._finished: dict[TrialKey, Trial] = {}
        self._measured: dict[str, dict[int, Trial]] = defaultdict(dict)
        self._plan, self._journal, self.starts = plan, journal, starts
        self.warnings: dict[str, None] = {}
        """Problems that no trial depends on, each once."""
        for trial in before:
            self.add(trial)

    async def record(self, finished: FinishedTrial) -> None:
        """Write a trial that has ended to the journal. It counts from then on.

        Raises `StorageError`, and `UsageError` when enough trials show that the agent cannot be run.
        """
        if self._journal is not None:
            await self._journal.append(finished)
        if finished.trial.left_out:
            return
        if self.starts is not None:
            self.starts.add(finished)
        self.add(finished.trial)

    def add(self, trial: Trial) -> None:
        """Count a trial that has ended. A trial that was not measured can be run again."""
        self._finished[trial.task_id, trial.trial] = trial
        if trial.status in MEASURED:
            self._measured[trial.task_id][trial.trial] = trial

    @property
    def finished(self) -> list[Trial]:
        """Every trial that has ended, as it ended last."""
        return list(self._finished.values())

    @property
    def spent(self) -> float:
        """Return the US dollars that the run has cost so far. Trials of earlier runs are paid for."""
        return sum(trial.cost for trial in self._finished.values() if not trial.reused_from)

    def paid_for(self, key: TrialKey) -> float:
        """Return the US dollars that the earlier attempts at a trial have cost."""
        return self._finished[key].cost if key in self._finished else 0.0

    def has(self, key: TrialKey) -> bool:
        """Return whether a trial was measured."""
        task_id, trial = key
        return trial in self._measured[task_id]

    def needless(self, task: EvalTask) -> str | None:
        """Return why no further trial of a task need be run now; `None` while one matters."""
        measured = tuple(self._measured[task.task_id].values())
        return None if self._plan is None else needless(self._plan, task, measured)


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
        wanted = confirming_trials(plan, trials, pool(trials))
        return Round(
            tuple(
                Batch(name=f"confirm {task.name}", step="confirm", trials=tuple((task.task_id, one) for one in numbers))
                for task, numbers in wanted
            )
        )

    order = tuple(key for key in run_order(plan.tasks, pool(run_state.finished)) if not run_state.has(key))
    # A round without an order has none to keep: it would be run whole. A resumed run may lack confirming trials alone.
    current = Round(planned_batches(plan.tasks), order) if order else confirming()
    while current.batches:
        await executor.run(current)
        if run_state.starts is not None:
            run_state.starts.refuse_wrong_command()
        current = confirming()


def confirming_trials(plan: Plan, trials: Sequence[Trial], baseline: Baseline) -> list[tuple[EvalTask, list[int]]]:
    """Return the tasks that get confirming trials, each with the numbers of those that can run at once; none when every
    failure is decided, or the gate is FAIL whatever they would show. Tasks that may not block get none.
    """
    policy, measurement = plan.gate_policy, measure_trials(plan.tasks, trials, baseline.repeated_trials)
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
    found = []
    for one in wanted:
        task = tasks[one.task]
        # A run that was cut off may have left gaps.
        free = (number for number in count(task.k) if number not in taken[task.task_id])
        found.append((task, list(islice(free, one.trials))))
    return found


def planned_batches(tasks: Sequence[EvalTask]) -> tuple[Batch, ...]:
    """Divide the planned trials of tasks into at most about thirty batches of one suite each; the order stays as far as
    it can.
    """
    size = max(1, -(-len(tasks) // MOST_BATCHES))
    by_suite: dict[str, list[EvalTask]] = {}
    for task in tasks:
        by_suite.setdefault(task.suite, []).append(task)
    return tuple(
        Batch(
            name=batch_name([task.name for task in some]),
            trials=tuple((task.task_id, number) for task in some for number in range(task.k)),
        )
        for of_suite in by_suite.values()
        for some in (of_suite[start : start + size] for start in range(0, len(of_suite), size))
    )


def batch_name(tasks: Sequence[str]) -> str:
    """Return the name of a batch of these tasks."""
    return f"{tasks[0]} and {len(tasks) - 1} more" if len(tasks) > 1 else tasks[0]


class Urgency(IntEnum):
    """The priority of a task: lower values run first."""

    SAFETY = 0
    """One violation decides the gate."""
    RED = 1
    """Red in the last run, so probably red again."""
    CHANGED = 2
    """New or edited, so without a baseline."""
    REST = 3


def run_order(tasks: Iterable[EvalTask], baseline: Baseline) -> list[TrialKey]:
    """Return all trials of some tasks, in the order in which an interrupted run has decided the most.

    Urgent tasks come first, see `Urgency`. Within an urgency, the first trial of every task comes before the second of
    any, because that shows a failing task soonest. Among these, cheap tasks come before expensive ones, and tasks with
    unknown cost last. Ties keep the order of the tasks.
    """
    keys: list[tuple[tuple[Urgency, int, tuple[int, float]], TrialKey]] = []
    for task in tasks:
        entry = baseline.of(task.name)
        urgency, expense = _urgency(task, entry), _expense(entry)
        keys += [((urgency, trial, expense), (task.task_id, trial)) for trial in range(task.k)]
    return [key for _, key in sorted(keys, key=lambda pair: pair[0])]


def _urgency(task: EvalTask, entry: BaselineTask) -> Urgency:
    if guards_safety(task):
        return Urgency.SAFETY
    was_red_last = bool(entry.runs) and entry.green_in_a_row == 0
    if was_red_last or entry.state in {BaselineState.RED, BaselineState.UNRELIABLE}:
        return Urgency.RED
    if entry.state in {BaselineState.NEW, BaselineState.NONE} or entry.before_edit:
        return Urgency.CHANGED
    return Urgency.REST


def _expense(entry: BaselineTask) -> tuple[int, float]:
    """Return a sort key: by the mean cost of a trial at the baseline, then by the mean time if no cost is known."""
    costs, times = all_figures(entry.costs), all_figures(entry.wall_times)
    if costs:
        return 0, fmean(costs)
    return (1, fmean(times)) if times else (2, 0.0)
