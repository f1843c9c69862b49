"""Burn in: a gate's plan in, what the gate has done in many runs of the same agent out."""

import asyncio
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from passgate.tasks.errors import StorageError
from passgate.tasks.execution.batch import run_numbered
from passgate.tasks.execution.confirming import confirming_trials
from passgate.tasks.execution.resources import TrialResources, hidden_from_agents, open_resources
from passgate.tasks.execution.run_state import RunState
from passgate.tasks.execution.scheduler import Scheduler, TrialKey
from passgate.tasks.files.atomic_write import PRIVATE_FILE, make_private_folder, write_atomically
from passgate.tasks.gates.decide import Ruling, rule_on
from passgate.tasks.gates.early_stopping import needless
from passgate.tasks.history.journal import Journal, read_journal
from passgate.tasks.history.of_run import masker_of
from passgate.tasks.history.run_folder import STATE_FOLDER
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.planning.baseline import Pool
from passgate.tasks.planning.order import run_order
from passgate.tasks.planning.pooled_runs import pool_of_runs
from passgate.tasks.stats.measurement import measurement_of


@dataclass(frozen=True)
class JudgedRun:
    """A finished run and what the gate said of it."""

    trials: tuple[Trial, ...]
    ruling: Ruling


@dataclass
class Finished:
    """The runs that have finished so far: what there is to report when no more are wanted."""

    begun: int = 0
    """Runs, those that did not finish among them."""
    first: list[tuple[Trial, ...]] = field(default_factory=list)
    """Those that make the baseline."""
    judged: list[JudgedRun] = field(default_factory=list)
    spent: float = 0.0
    """US dollars, of runs that did not finish too."""
    error: str = ""
    """Why the first trial could not be measured of which that is so."""
    pool: Pool | None = None
    """What the judged runs are compared with."""

    @property
    def all(self) -> list[tuple[Trial, ...]]:
        return [*self.first, *(run.trials for run in self.judged)]


def first_runs(plan: Plan, runs: int) -> int:
    """How many of some runs make the baseline where the history has none: as many as are pooled, at most half."""
    return min(plan.policy.baseline.runs, runs // 2)


def folder_of(plan: Plan) -> Path:
    """Where the trials of a burn-in are kept; the history knows nothing of them."""
    return (STATE_FOLDER / "burn-in" / plan.run_id).absolute()


async def burn_in(
    plan: Plan, runs: int, finished: Finished, pool: Pool | None, tell: Callable[[], None] = lambda: None
) -> None:
    """Run a gate again and again and judge every run, until all are done or the money is spent.

    Without a `pool` the first runs make one. What has finished is in `finished`, whatever ends the burn-in; `tell` is
    called after each run. Raises `UsageError` and `StorageError`.
    """
    _make(folder_of(plan))
    scheduler = Scheduler(plan.request.jobs or plan.policy.concurrency.trials)
    async with open_resources(
        plan.agent,
        Path(plan.suites_folder),
        plan.policy,
        prices=plan.prices,
        cost_cap=CostCap(plan.request.max_cost),
        needs_price=plan.needs_price,
        hidden=hidden_from_agents(plan),
        label=plan.run_id,
    ) as bench:
        series = _Series(plan, bench, scheduler, finished, tell)
        first = 0 if pool is not None else first_runs(plan, runs)
        await series.run(range(first), None)
        finished.pool = pool or pool_of_runs(plan, finished.first)
        await series.run(range(first, runs), finished.pool)


def _make(folder: Path) -> None:
    try:
        make_private_folder(folder.parent)
        folder.mkdir(mode=stat.S_IRWXU)
        # What a burn-in leaves behind belongs in no commit.
        write_atomically(folder.parent / ".gitignore", "*\n", mode=PRIVATE_FILE)
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error}") from error


class _Series:
    """Runs of one gate, of which so many go on at once as trials may."""

    def __init__(
        self, plan: Plan, bench: TrialResources, scheduler: Scheduler, finished: Finished, tell: Callable[[], None]
    ) -> None:
        self._plan, self._bench, self._slots, self._finished = plan, bench, scheduler, finished
        self._tell = tell
        self._begun = asyncio.Semaphore(plan.request.jobs or plan.policy.concurrency.trials)

    async def run(self, numbers: range, pool: Pool | None) -> None:
        """Run these; judge them where there is something to compare them with."""
        async with asyncio.TaskGroup() as group:
            for number in numbers:
                group.create_task(self._one(number, pool))

    async def _one(self, number: int, pool: Pool | None) -> None:
        async with self._begun:
            if self._bench.cost_cap.exhausted:
                return
            self._finished.begun += 1
            trials = await self._trials(number, pool)
        self._finished.spent += sum(trial.cost for trial in trials)
        errors = (trial.reason for trial in trials if trial.status is TrialStatus.ERROR)
        self._finished.error = self._finished.error or next(errors, "")
        if not any(trial.status is TrialStatus.NOT_RUN and not trial.left_out for trial in trials):
            self._add(trials, pool)
        self._tell()

    def _add(self, trials: tuple[Trial, ...], pool: Pool | None) -> None:
        plan = self._plan
        if pool is None:
            self._finished.first.append(trials)
            return
        ruling = rule_on(plan, plan.gate_policy, measurement_of(plan.tasks, trials), pool(trials))
        self._finished.judged.append(JudgedRun(trials, ruling))

    async def _trials(self, number: int, pool: Pool | None) -> tuple[Trial, ...]:
        file = folder_of(self._plan) / f"{number:04}.jsonl"
        run_state = RunState((), partial(needless, self._plan))
        with Journal(file, masker_of(self._plan)) as journal:
            scheduler = _SlotsOfRun(self._slots, number)
            run = partial(run_numbered, bench=self._bench, journal=journal, scheduler=scheduler, run_state=run_state)
            baseline = Baseline(branch="") if pool is None else pool(())
            tasks = {task.task_id: task for task in self._plan.tasks}
            async with asyncio.TaskGroup() as group:
                for task_id, trial in run_order(self._plan.tasks, baseline):
                    group.create_task(run(tasks[task_id], [trial]))
            while pool and (wanted := confirming_trials(self._plan, run_state.finished, pool(run_state.finished))):
                async with asyncio.TaskGroup() as group:
                    for task, numbers in wanted:
                        group.create_task(run(task, numbers))
        return tuple(one.trial for one in read_journal(file)[0])


class _SlotsOfRun(Scheduler):
    """The slots that all runs share, for one of them: their trials have the same names."""

    def __init__(self, shared: Scheduler, number: int) -> None:
        super().__init__(0)
        self._shared, self._number = shared, number

    @asynccontextmanager
    async def slot(self, key: TrialKey) -> AsyncIterator[None]:
        """Wait for a turn and hold a slot while the context lasts."""
        task_id, trial = key
        async with self._shared.slot((f"{self._number}/{task_id}", trial)):
            yield
