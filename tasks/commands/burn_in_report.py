"""The report of a burn-in: finished runs in, what they say beside the forecast out."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from passgate.tasks.commands.burn_in import Finished, JudgedRun, folder_of
from passgate.tasks.commands.forecast import forecast
from passgate.tasks.forecasts.assumptions import Basis, measured_rates, noises_of
from passgate.tasks.history.baseline import baseline_of
from passgate.tasks.history.error_rates import error_rates_of
from passgate.tasks.model.forecast import BurnIn, Cause
from passgate.tasks.model.measurement import Interval
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import Suite
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import Decision
from passgate.tasks.planning.baseline import Pool
from passgate.tasks.planning.pooled_runs import alone, rows_of
from passgate.tasks.reports import figures
from passgate.tasks.stats.estimators import wilson_interval


def tally(plan: Plan, finished: Finished, asked: int, why_ended: str = "") -> BurnIn | None:
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
        inconclusive=sum(_is_inconclusive(run) for run in judged),
        red_interval=Interval(low=low, high=high),
        trials=fmean(len(_run(one)) for one in judged),
        confirming=fmean(sum(trial.trial >= trial.k for trial in _run(one)) for one in judged),
        saved=fmean(sum(trial.left_out for trial in one.trials) for one in judged),
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
    return _what_kept_them(plan, finished, asked, interrupted) + because


def _what_kept_them(plan: Plan, finished: Finished, asked: int, interrupted: bool) -> str:
    if finished.judged:
        return f"nothing could be measured in {figures.count(len(finished.all), 'run')}"
    if interrupted:
        return f"interrupted before a run was judged: {finished.begun} of {asked} runs had begun"
    money = f"--max-cost {plan.request.max_cost or 0:g} left no money"
    if not finished.first:
        return f"{money} for a single run"
    return f"{money} for a run to judge: {len(finished.first)} of {asked} runs made the baseline"


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


_Blamed = tuple[Rule, Suite | None, str]


def _causes(judged: Sequence[JudgedRun], key: Callable[[_Blamed], _Blamed]) -> tuple[Cause, ...]:
    """In how many runs each has blocked, the most frequent first."""
    counts = Counter(check_of for run in judged for check_of in {key(one) for one in _blamed(run)})
    whole = counts.total()
    return tuple(
        Cause(rule=rule, suite=suite, task=task, chance=count / len(judged), share=count / whole)
        for (rule, suite, task), count in sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    )


def _blamed(run: JudgedRun) -> Iterator[_Blamed]:
    for reason in run.ruling.reasons:
        if reason.blocking and reason.rule not in {Rule.MISSING_EVIDENCE, Rule.SIGN_OFF}:
            task = f"{reason.suite}/{reason.task_id}" if reason.task_id else ""
            yield reason.rule, None if task else reason.suite, task


def _is_inconclusive(run: JudgedRun) -> bool:
    return run.ruling.decision is Decision.INCONCLUSIVE and not run.ruling.awaiting_sign_off


def _run(one: JudgedRun) -> list[Trial]:
    """The trials that were not left out."""
    return [trial for trial in one.trials if not trial.left_out]


def _cost(one: JudgedRun) -> float | None:
    costs = [trial.metrics.cost for trial in one.trials if trial.metrics.cost is not None]
    return sum(costs) if costs else None
