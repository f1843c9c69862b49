"""Burn-in: run a gate many times with the same agent, and compare its verdicts with the forecast."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from passgate.tasks.agents.starts import Starts
from passgate.tasks.commands.forecast import forecast
from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.execution.coordinator import RunState, coordinate
from passgate.tasks.execution.engine import Engine
from passgate.tasks.execution.worker import InProcess, open_worker, trials_at_once
from passgate.tasks.files.atomic_write import make_private_folder
from passgate.tasks.forecasts.assumptions import Basis, measured_rates, measured_spread
from passgate.tasks.gates.decide import Ruling, rule_on
from passgate.tasks.history.baseline import error_rates, pool_baseline
from passgate.tasks.history.journal import FileJournal, read_journal
from passgate.tasks.history.storage import STATE_FOLDER, protect_state_folder
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.forecast import BurnIn, Cause
from passgate.tasks.model.measurement import Interval
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import Suite
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Decision
from passgate.tasks.planning.baseline import Pool, alone, history_rows, pool_of_runs
from passgate.tasks.reports import figures
from passgate.tasks.stats.estimators import wilson_interval
from passgate.tasks.stats.measurement import measure_trials


class JudgedRun(NamedTuple):
    """A finished run and what the gate said of it."""

    trials: tuple[Trial, ...]
    ruling: Ruling


@dataclass
class Finished:
    """The runs that have finished so far. A burn-in that is interrupted reports these."""

    begun: int = 0  # runs, also those that did not finish
    first: list[tuple[Trial, ...]] = field(default_factory=list)  # the runs that make the baseline
    judged: list[JudgedRun] = field(default_factory=list)
    spent: float = 0.0  # US dollars, of runs that did not finish too
    error: str = ""  # the reason of the first trial that could not be measured
    pool: Pool | None = None  # what the judged runs are compared with

    @property
    def all(self) -> list[tuple[Trial, ...]]:
        return [*self.first, *(run.trials for run in self.judged)]


def first_runs(plan: Plan, runs: int) -> int:
    """Return how many of the runs make the baseline if the history has none: as many as are pooled, at most half."""
    return min(plan.policy.baseline.runs, runs // 2)


def burn_in_folder(plan: Plan) -> Path:
    """Return the folder for the trials of a burn-in. They never enter the history."""
    return (STATE_FOLDER / "burn-in" / plan.run_id).absolute()


async def burn_in(
    plan: Plan, runs: int, finished: Finished, pool: Pool | None, tell: Callable[[], None] = lambda: None
) -> None:
    """Run a gate again and again and judge every run into `finished`, until all are done or the money is spent.

    Without a `pool` the first runs make one. Calls `tell` after each run. Raises `UsageError` and `StorageError`.
    """
    folder = burn_in_folder(plan)
    try:
        make_private_folder(folder)
        protect_state_folder()
    except (OSError, StorageError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        remedy = "start passgate in a folder that you can write to"
        raise UsageError(f"cannot write into {folder.parent}: {why}: {remedy}") from error
    first = 0 if pool is not None else first_runs(plan, runs)
    finished.pool, cost_cap = pool, CostCap(plan.request.max_cost)
    for number in range(runs):
        if number == first and finished.pool is None:
            finished.pool = pool_of_runs(plan, finished.first)
        # A run that is cut off cannot be judged, so none begins without money.
        if cost_cap.exhausted:
            return
        finished.begun += 1
        trials = await _run(plan, folder / f"{number:04}.jsonl", cost_cap, finished)
        is_whole = not any(trial.status is TrialStatus.NOT_RUN and not trial.left_out for trial in trials)
        if is_whole and finished.pool is None:
            finished.first.append(trials)
        elif is_whole and finished.pool is not None:
            measurement, baseline = measure_trials(plan.tasks, trials), finished.pool(trials)
            finished.judged.append(JudgedRun(trials, rule_on(plan, plan.gate_policy, measurement, baseline)))
        tell()


async def _run(plan: Plan, file: Path, cost_cap: CostCap, finished: Finished) -> tuple[Trial, ...]:
    """Run the gate once, as any run, and journal its trials in a file."""
    # Without a baseline there is nothing to confirm.
    pool = finished.pool or (lambda _: Baseline(branch=""))
    with FileJournal(file) as journal:
        run_state = RunState(plan=plan, journal=journal, starts=Starts())
        async with open_worker(plan, run_state, cost_cap) as worker:
            await coordinate(plan, pool, run_state, InProcess(Engine(), worker, trials_at_once(plan)))
    trials = tuple(one.trial for one in read_journal(file)[0])
    finished.spent += sum(trial.cost for trial in trials)
    errors = (trial.reason for trial in trials if trial.status is TrialStatus.ERROR)
    finished.error = finished.error or next(errors, "")
    return trials


def summarise(plan: Plan, finished: Finished, asked: int, why_ended: str = "") -> BurnIn | None:
    """Return the figures of the finished runs; `None` if none was judged or nothing could be measured."""
    judged, pool = finished.judged, finished.pool
    if not judged or pool is None:
        return None
    # The rates come from all finished runs: those that made the baseline are of the same agent.
    found = history_rows(plan, finished.all)
    every = plan.policy.baseline.model_copy(update={"runs": len(finished.all)})
    policy = plan.policy.model_copy(update={"baseline": every})
    measured = pool_baseline(alone(plan).model_copy(update={"policy": policy}), found)
    rates = measured_rates(plan.tasks, measured)
    if not rates:
        return None
    used = pool(judged[-1].trials)
    errors, spread = error_rates(measured, found), measured_spread(plan.tasks, measured)
    basis = Basis(used, rates, "burn-in", errors, spread)
    red = sum(run.ruling.decision is Decision.FAIL for run in judged)
    # A run that only waits for a sign-off has all its evidence.
    open_runs = [run for run in judged if run.ruling.decision is Decision.INCONCLUSIVE]
    low, high = wilson_interval(len(judged), red)
    known = [[trial.metrics.cost for trial in run.trials if trial.metrics.cost is not None] for run in judged]
    costs = [sum(of_run) for of_run in known if of_run]
    return BurnIn(
        gate=plan.gate,
        agent=str(plan.agent),
        folder=os.path.relpath(burn_in_folder(plan)),
        asked=asked,
        first=len(finished.first),
        judged=len(judged),
        red=red,
        inconclusive=sum(not run.ruling.awaiting_sign_off for run in open_runs),
        red_interval=Interval(low=low, high=high),
        trials=fmean(sum(not trial.left_out for trial in run.trials) for run in judged),
        confirming=fmean(sum(trial.trial >= trial.k and not trial.left_out for trial in run.trials) for run in judged),
        saved=fmean(sum(trial.left_out for trial in run.trials) for run in judged),
        cost=fmean(costs) if costs else None,
        spent=finished.spent,
        rules=_causes(judged, by_rule=True),
        causes=_causes(judged, by_rule=False),
        forecast=forecast(plan, basis),
        why_ended=why_ended,
    )


def why_nothing(plan: Plan, finished: Finished, asked: int, *, interrupted: bool) -> str:
    """Return why the runs give no figures."""
    because = f"; the first error: {finished.error}" if finished.error else ""
    if finished.judged:
        return f"nothing could be measured in {figures.count(len(finished.all), 'run')}{because}"
    if interrupted:
        return f"interrupted before a run was judged: {finished.begun} of {asked} runs had begun{because}"
    money = f"--max-cost {plan.request.max_cost or 0:g} left no money"
    if not finished.first:
        return f"{money} for a single run{because}"
    return f"{money} for a run to judge: {len(finished.first)} of {asked} runs made the baseline{because}"


def _causes(judged: Sequence[JudgedRun], *, by_rule: bool) -> tuple[Cause, ...]:
    """Return in how many runs each rule has blocked, by rule alone or by suite or task too, the most frequent first."""
    counts: Counter[tuple[Rule, Suite | None, str]] = Counter()
    for run in judged:
        blockers = set()  # a rule that blocks on five tasks makes a run red once
        for reason in run.ruling.reasons:
            if reason.blocking and reason.rule not in {Rule.MISSING_EVIDENCE, Rule.SIGN_OFF}:
                task = f"{reason.suite}/{reason.task_id}" if reason.task_id and not by_rule else ""
                blockers.add((reason.rule, None if task or by_rule else reason.suite, task))
        counts.update(blockers)
    whole = counts.total()
    return tuple(
        Cause(rule=rule, suite=suite, task=task, chance=count / len(judged), share=count / whole)
        for (rule, suite, task), count in sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    )
