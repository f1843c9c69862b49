"""Forecast: a gate's plan and the pass rates of its agent in, how often the gate will be red out."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd

from passgate.tasks.errors import InputError, UsageError
from passgate.tasks.forecasts.advice import improve
from passgate.tasks.forecasts.assumptions import (
    Basis,
    Setting,
    Source,
    TaskAssumptions,
    measured_rates,
    measured_spread,
    trials_of,
)
from passgate.tasks.forecasts.setting_forecast import (
    NO_LIMITS,
    SettingForecast,
    SimulatedLimits,
    Simulation,
    simulate_limits,
)
from passgate.tasks.formats.four_suite import shown_path
from passgate.tasks.formats.project_files import PINS_FILE, read_rates
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.gates.guards import is_weighed
from passgate.tasks.history.baseline import ErrorRates, error_rates
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.merge_base import pinned_base, request_base
from passgate.tasks.integrity.tracked_folders import open_history
from passgate.tasks.model.baseline import Baseline, BaselineState
from passgate.tasks.model.forecast import TARGET, Advice, Forecast, TaskForecast
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import VETOES, Rule
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import BY_TRIALS, GateName, guards_safety
from passgate.tasks.model.trial import MEASURED, TrialStatus
from passgate.tasks.planning.baseline import pooled_baseline, read_earlier_runs
from passgate.tasks.planning.plan import new_plan
from passgate.tasks.stats.measurement import measure_trials
from passgate.tasks.stats.ratios import LEAST_PAIRS, LEAST_RUNS
from passgate.tasks.stats.regression import ENOUGH

RATES = (1.0, 0.99, 0.98, 0.96, 0.94, 0.92, 0.9, 0.875, 0.85, 0.825, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.4, 0.3)
"""The pass rates of the curve."""
_ENOUGH_RUNS = 10  # Fewer runs at the baseline do not show how whole runs differ, nor how much tasks do
_NO_ERRORS = ErrorRates(0.0, {})


def forecast_plan(gate: GateName, request: RunRequest) -> Plan:
    """Return a plan, never run, with the base to compare a run with. Raises `InputError` or `UsageError`."""
    with Checkout(Path.cwd()) as checkout:
        plan = new_plan(gate, request, checkout)
        base = request_base(checkout, request, plan.policy)
    return plan.model_copy(update={"base": pinned_base(base, plan.pins, Path.cwd())})


def forecast_basis(plan: Plan, assumed: float | None, rates_file: Path | None) -> Basis:
    """Return the basis by one pass rate, a file or the history. Raises `InputError`, and as `history_basis`."""
    names = [task.name for task in plan.tasks]
    if assumed is not None:
        return history_basis(plan, dict.fromkeys(names, assumed), "assumed")
    if rates_file is None:
        return history_basis(plan, {}, "history")
    given = read_rates(rates_file, shown_path(rates_file, Path.cwd()), names)
    if isinstance(given, list):
        raise InputError(given)
    return history_basis(plan, given, "file")


def history_basis(plan: Plan, given: Mapping[str, float], source: Source) -> Basis:
    """Return the history's basis with given pass rates. Raises `UsageError` if a task has no rate, `StorageError`."""
    history = open_history(plan.history_location)
    earlier = read_earlier_runs(plan, history, str(plan.agent))
    rows = earlier.trials
    baseline = pooled_baseline(plan, earlier)
    rates = {**measured_rates(plan.tasks, baseline), **given}
    if any(task.name not in rates for task in plan.tasks):
        raise UsageError(f"{_missing_rates_reason(plan, baseline, rows)}; `--assume 0.99` forecasts without any")
    spread = measured_spread(plan.tasks, baseline)
    return Basis(baseline, rates, source, error_rates(baseline, rows), spread)


def _missing_rates_reason(plan: Plan, baseline: Baseline, rows: pd.DataFrame) -> str:
    """Return why the rows of an agent give no pass rates for the plan's tasks, and what to do about it."""
    has_runs = any(baseline.of(task.name).state is not BaselineState.NEW for task in plan.tasks)
    statuses = rows["status"][(rows["suite"] + "/" + rows["task_id"]).isin([task.name for task in plan.tasks])]
    but = ""
    if has_runs and statuses.isin([str(status) for status in MEASURED]).any():
        but = ", but none measured them as they are now"
    elif has_runs:
        but = ", but they measured nothing"
    elif len(statuses) and plan.pins is None:
        but = ", only runs of other commits or of files that were not committed"
    where = "there" if plan.pins else f"on {plan.policy.baseline.branch}"
    what = (
        f"the history {plan.history_location} has {'' if has_runs else 'no '}runs of {plan.agent} {where} with the "
        f"tasks of {plan.gate}{but}{f' ({plan.base.note})' if plan.base.note else ''}"
    )
    if plan.pins is not None:
        commit, runs = plan.pins.commit, ", ".join(plan.pins.runs)
        pinned = f"the runs {runs}" if commit is None else f"the commit {commit[:12]}"
        return f"{PINS_FILE} pins {pinned}, and {what}: `passgate baseline clear` takes the pin away"
    run = f"passgate run {plan.gate} --agent {shlex.quote(str(plan.agent))}"
    return f"{what}: `{run}` makes {'another' if has_runs else 'the first'}"


def forecast(plan: Plan, basis: Basis, *, gates: int = 10_000, seed: int = 0) -> Forecast:
    """Forecast what the plan's gate will do with its agent, from this number of simulated runs."""
    setting = forecast_setting(plan, basis)
    # A gate does not compare the latency and the cost of reference agents.
    limits = NO_LIMITS if plan.agent.is_reference else simulate_limits(setting.tasks, gates, seed)
    simulation = Simulation(gates, seed, limits)

    def evaluate(one: Setting) -> SettingForecast:
        return SettingForecast(one, simulation)

    # Every failed task blocks in the strict gate, except those in quarantine.
    regression = plan.gate_policy.regression.model_copy(update={"mode": "strict"})
    gate = plan.gate_policy.model_copy(update={"regression": regression, "admission": False})
    policy = plan.policy.model_copy(update={"gates": {**plan.policy.gates, plan.gate: gate}})
    strict = evaluate(replace(setting, plan=plan.model_copy(update={"policy": policy})))
    now = evaluate(setting)
    gaps = _gaps(plan, basis.baseline)
    advice = None
    if now.red > TARGET:
        improved = improve(now, evaluate, TARGET)
        then = improved.forecast
        advice = Advice(
            changes=improved.changes,
            reaches_target=then.red <= TARGET,
            red=then.red,
            catches=then.catches(strict),
            effort=then.effort,
        )
    simulated = f"{gates:,} runs are simulated: the share of FAIL is known"
    return Forecast(
        gate=plan.gate,
        agent=str(plan.agent),
        rates=basis.source,
        baseline_runs=len(basis.baseline.runs),
        red=now.red,
        inconclusive=1 - now.red if gaps else now.inconclusive,
        strict_red=strict.red,
        catches=now.catches(strict),
        agent_falls=now.agent_falls(strict),
        red_error=now.red_error,
        run_spread=setting.spread,
        effort=now.effort,
        rules=tuple(now.rules()),
        causes=tuple(now.causes()),
        advice=advice,
        tasks=tuple(_tasks(now, basis)),
        curve=now.curve(strict, RATES),
        simulated=gates,
        seed=seed,
        notes=(
            *gaps,
            *_notes(plan, basis, limits),
            *_young_notes(setting),
            *(
                [f"{simulated} to within {200 * now.red_error:.1g} points (two standard errors)"]
                if now.red_error
                else []
            ),
        ),
    )


def forecast_setting(plan: Plan, basis: Basis) -> Setting:
    """Return the plan and its tasks as a forecast sees them."""
    failed = _all(plan, TrialStatus.FAILED).tasks
    tasks = tuple(
        TaskAssumptions(
            failed=one,
            rate=basis.rates[one.name],
            errors=(error_rates := basis.error_rates.get(one.name, _NO_ERRORS)).errors,
            violations=error_rates.violations,
            known=basis.known(one.name),
            safety=guards_safety(task),
        )
        for task, one in zip(plan.tasks, failed, strict=True)
    )
    return Setting(plan, tasks, basis.spread)


def _tasks(now: SettingForecast, basis: Basis) -> Iterator[TaskForecast]:
    able = set(now.able)
    of_tasks = zip(now.setting.tasks, now.withheld, now.blocked, strict=True)
    for index, (task, withheld, blocked) in enumerate(of_tasks):
        counted = task.known if basis.source in {"history", "burn-in"} else None
        yield TaskForecast(
            task=task.name,
            k=task.failed.k,
            pass_rate=task.rate,
            passed=counted and counted.passed,
            n=counted and counted.n,
            state="as assumed" if task.known is None else str(task.known.state),
            withheld=withheld,
            red=blocked,
            can_block=index in able,
        )


def _all(plan: Plan, status: TrialStatus) -> Measurement:
    """Return the measurement of a run in which every trial has this status."""
    return measure_trials(plan.tasks, [one for task in plan.tasks for one in trials_of(task, status)])


def _gaps(plan: Plan, baseline: Baseline) -> tuple[str, ...]:
    """Return why the gate is INCONCLUSIVE even if every trial passes."""
    ruling = rule_on(plan, plan.gate_policy, _all(plan, TrialStatus.PASSED), baseline)
    return tuple(
        f"no run can PASS, whatever its trials give: {reason.message}"
        for reason in ruling.reasons
        if reason.blocking and reason.rule is Rule.MISSING_EVIDENCE
    )


def _notes(plan: Plan, basis: Basis, limits: SimulatedLimits) -> Iterator[str]:
    gate = plan.gate_policy
    if plan.base.note:
        yield plan.base.note
    by_scores = sum(task.metric not in BY_TRIALS for task in plan.tasks)
    if by_scores:
        yield f"{by_scores} tasks go by their scores: each counts as one trial that passes as often as its runs do"
    for rule, bounds, figures in ((Rule.LATENCY, limits.latency, "times"), (Rule.COST, limits.cost, "costs")):
        is_limited = rule in gate.blocks_on and rule in gate.limits.rules
        if is_limited and bounds is None and not plan.agent.is_reference:
            too_few = f"the baseline has {figures} for fewer than {LEAST_PAIRS} tasks or {LEAST_RUNS} runs"
            yield f"{rule} is not forecast: {too_few}, so the gate does not judge it"
    if basis.spread:
        yield f"whole runs differ by {100 * basis.spread:g} points: the forecast counts how often a whole run is bad"
    vetoes = VETOES & {*gate.blocks_on}
    if vetoes and not any(one.violations for one in basis.error_rates.values()):
        yield "violations are not forecast: the history has none"


def _young_notes(setting: Setting) -> Iterator[str]:
    """Say from which run on the gate is sharp, and what few runs do not show."""
    gate = setting.plan.gate_policy
    known = [(task, task.known) for task in setting.tasks if task.known is not None and is_weighed(gate, task.failed)]
    young = [task for task, before in known if before.n < ENOUGH]
    if young:
        sharp = max(-(-ENOUGH // task.failed.k) for task in young)
        blocks = "only a shown fall blocks" if setting.young == "report" else "what stays undecided may block"
        yield (
            f"the baseline is young: {len(young)} of {len(setting.tasks)} tasks have fewer than {ENOUGH} trials, so "
            f"{blocks} there; the gate is sharp from {sharp} runs on {setting.branch} on"
        )
    runs = max((len(before.counts) for _, before in known), default=_ENOUGH_RUNS)
    if runs < _ENOUGH_RUNS:
        yield (
            f"the rates are known from {runs} runs at the most: where tasks differ much, or whole runs do, the gate is "
            "red several times as often as this forecast says"
        )
