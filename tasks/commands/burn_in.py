"""Burn in: a gate's plan in, what the gate has done in many runs of the same agent, beside the forecast, out."""

import asyncio
import os
import stat
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean

from passgate.tasks.agents.starts import Starts
from passgate.tasks.commands.forecast import forecast
from passgate.tasks.errors import StorageError
from passgate.tasks.execution.batch import confirming_batches
from passgate.tasks.execution.coordinator import confirming_trials
from passgate.tasks.execution.resources import TrialResources
from passgate.tasks.execution.run_state import RunState
from passgate.tasks.execution.scheduler import Scheduler, TrialKey
from passgate.tasks.execution.worker import Worker, resources_of, trials_at_once
from passgate.tasks.files.atomic_write import PRIVATE_FILE, make_private_folder, write_atomically
from passgate.tasks.forecasts.assumptions import Basis, measured_rates, noises_of
from passgate.tasks.gates.decide import Ruling, rule_on
from passgate.tasks.gates.early_stopping import needless
from passgate.tasks.grade import grade
from passgate.tasks.history.baseline import baseline_of, error_rates_of
from passgate.tasks.history.journal import FileJournal, read_journal
from passgate.tasks.history.masking import masker_of
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.forecast import BurnIn, Cause
from passgate.tasks.model.measurement import Interval
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Batch, Plan
from passgate.tasks.model.task import Suite
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Decision
from passgate.tasks.planning.baseline import Pool, alone, pool_of_runs, rows_of
from passgate.tasks.planning.order import run_order
from passgate.tasks.reports import figures
from passgate.tasks.stats.estimators import wilson_interval
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
    cost_cap = CostCap(plan.request.max_cost)
    async with resources_of(plan, cost_cap, grade) as resources:
        series = _Series(plan, resources, cost_cap, finished, tell)
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
        self,
        plan: Plan,
        resources: Mapping[Suite, TrialResources],
        cost_cap: CostCap,
        finished: Finished,
        tell: Callable[[], None],
    ) -> None:
        self._plan, self._resources, self._cost_cap, self._finished = plan, resources, cost_cap, finished
        self._tell = tell
        self._scheduler = Scheduler(trials_at_once(plan))
        self._starts = Starts()
        self._begun = asyncio.Semaphore(trials_at_once(plan))

    async def run(self, numbers: range, pool: Pool | None) -> None:
        """Run these; judge them where there is something to compare them with."""
        async with asyncio.TaskGroup() as group:
            for number in numbers:
                group.create_task(self._one(number, pool))

    async def _one(self, number: int, pool: Pool | None) -> None:
        async with self._begun:
            if self._cost_cap.exhausted:
                return
            self._finished.begun += 1
            trials = await self._trials(number, pool)
        self._finished.spent += sum(trial.cost for trial in trials)
        errors = (trial.reason for trial in trials if trial.status is TrialStatus.ERROR)
        self._finished.error = self._finished.error or next(errors, "")
        is_whole = not any(trial.status is TrialStatus.NOT_RUN and not trial.left_out for trial in trials)
        if is_whole and pool is None:
            self._finished.first.append(trials)
        elif is_whole and pool is not None:
            ruling = rule_on(self._plan, self._plan.gate_policy, measurement_of(self._plan.tasks, trials), pool(trials))
            self._finished.judged.append(JudgedRun(trials, ruling))
        self._tell()

    async def _trials(self, number: int, pool: Pool | None) -> tuple[Trial, ...]:
        file = folder_of(self._plan) / f"{number:04}.jsonl"
        run_state = RunState((), partial(needless, self._plan))
        with FileJournal(file, masker_of(self._plan)) as journal:
            worker = Worker(
                tasks={task.task_id: task for task in self._plan.tasks},
                resources=self._resources,
                journal=journal,
                run_state=run_state,
                starts=self._starts,
            )
            baseline = Baseline(branch="") if pool is None else pool(())
            planned = Batch(name="planned", trials=tuple(run_order(self._plan.tasks, baseline)))
            scheduler = _SchedulerOfRun(self._scheduler, number)
            await worker.run(planned, scheduler)
            while pool and (wanted := confirming_trials(self._plan, run_state.finished, pool(run_state.finished))):
                async with asyncio.TaskGroup() as group:
                    for batch in confirming_batches(wanted):
                        group.create_task(worker.run(batch, scheduler))
        return tuple(one.trial for one in read_journal(file)[0])


class _SchedulerOfRun(Scheduler):
    """The scheduler that all runs share, for one of them: their trials have the same names."""

    def __init__(self, shared: Scheduler, number: int) -> None:
        super().__init__(0)
        self._shared, self._number = shared, number

    @asynccontextmanager
    async def slot(self, key: TrialKey) -> AsyncIterator[None]:
        """Wait for a turn and hold a slot while the context lasts."""
        task_id, trial = key
        async with self._shared.slot((f"{self._number}/{task_id}", trial)):
            yield


def summarise(plan: Plan, finished: Finished, asked: int, why_ended: str = "") -> BurnIn | None:
    """What the finished of so many runs say; `None` where none was judged or nothing could be measured."""
    judged = finished.judged
    if not judged or finished.pool is None:
        return None
    basis = _basis(plan, finished, finished.pool)
    if not basis.rates:
        return None
    red = sum(run.ruling.decision is Decision.FAIL for run in judged)
    low, high = wilson_interval(len(judged), red)
    causes = _causes(judged, lambda cause: cause)
    costs = [cost for cost in map(_cost, judged) if cost is not None]
    return BurnIn(
        gate=plan.gate,
        agent=str(plan.agent),
        folder=os.path.relpath(folder_of(plan)),
        asked=asked,
        first=len(finished.first),
        judged=len(judged),
        red=red,
        inconclusive=sum(
            run.ruling.decision is Decision.INCONCLUSIVE and not run.ruling.awaiting_sign_off for run in judged
        ),
        red_interval=Interval(low=low, high=high),
        trials=fmean(sum(not trial.left_out for trial in run.trials) for run in judged),
        confirming=fmean(sum(trial.trial >= trial.k and not trial.left_out for trial in run.trials) for run in judged),
        saved=fmean(sum(trial.left_out for trial in run.trials) for run in judged),
        cost=fmean(costs) if costs else None,
        spent=finished.spent,
        rules=_causes(judged, lambda cause: (cause[0], None, "")),
        causes=causes,
        forecast=forecast(plan, basis),
        why_ended=why_ended,
    )


def why_nothing(plan: Plan, finished: Finished, asked: int, *, interrupted: bool) -> str:
    """Why so many runs say nothing."""
    because = f"; the first error: {finished.error}" if finished.error else ""
    if finished.judged:
        return f"nothing could be measured in {figures.count(len(finished.all), 'run')}{because}"
    if interrupted:
        return f"interrupted before a run was judged: {finished.begun} of {asked} runs had begun{because}"
    money = f"--max-cost {plan.request.max_cost or 0:g} left no money"
    if not finished.first:
        return f"{money} for a single run{because}"
    return f"{money} for a run to judge: {len(finished.first)} of {asked} runs made the baseline{because}"


def _basis(plan: Plan, finished: Finished, pool: Pool) -> Basis:
    """The baseline of the judged runs, and the rates of all that have finished."""
    found = rows_of(plan, finished.all)
    every = plan.policy.model_copy(
        update={"baseline": plan.policy.baseline.model_copy(update={"runs": len(finished.all)})}
    )
    measured = baseline_of(alone(plan).model_copy(update={"policy": every}), found)
    rates = measured_rates(plan.tasks, measured)
    used = pool(finished.judged[-1].trials)
    return Basis(used, rates, "burn-in", error_rates_of(measured, found), noises_of(measured))


_Blocker = tuple[Rule, Suite | None, str]
"""A rule, and the suite or the task that it has blocked on."""


def _causes(judged: Sequence[JudgedRun], key: Callable[[_Blocker], _Blocker]) -> tuple[Cause, ...]:
    """In how many runs each has blocked, the most frequent first."""
    counts = Counter(blocker for run in judged for blocker in {key(one) for one in _blockers(run)})
    whole = counts.total()
    return tuple(
        Cause(rule=rule, suite=suite, task=task, chance=count / len(judged), share=count / whole)
        for (rule, suite, task), count in sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    )


def _blockers(run: JudgedRun) -> Iterator[_Blocker]:
    for reason in run.ruling.reasons:
        if reason.blocking and reason.rule not in {Rule.MISSING_EVIDENCE, Rule.SIGN_OFF}:
            task = f"{reason.suite}/{reason.task_id}" if reason.task_id else ""
            yield reason.rule, None if task else reason.suite, task


def _cost(run: JudgedRun) -> float | None:
    costs = [trial.metrics.cost for trial in run.trials if trial.metrics.cost is not None]
    return sum(costs) if costs else None
