"""The smallest change of policy that brings false reds down to what a team puts up with, out of all that are tried."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import yaml

from passgate.tasks.forecasts.assumptions import Setting
from passgate.tasks.forecasts.setting_forecast import SettingForecast
from passgate.tasks.model.forecast import Cause, Change
from passgate.tasks.model.policy import Admission, GatePolicy, QuarantineEntry, Rule
from passgate.tasks.model.task import BY_TRIALS, Metric, Suite

_FAILURES: Final = frozenset({Rule.GOLDEN_REGRESSION, Rule.TASK_FAILED})
MOST_TASKS: Final = 3
"""Tasks that are tried in quarantine, each alone."""
_PERCENTS: Final = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 75.0, 100.0)
_SHARES: Final = (0.95, 0.9, 0.8)
_STEPS: Final = 3
_MOST_TRIALS: Final = 500
_QUARANTINE_DAYS: Final = 30
_FIRST_OF_PAIRS: Final = 4
"""So many single changes are tried with a second one: the smallest, and those that leave the fewest false reds."""
_MOST_PAIRS: Final = 30
"""Some take a second or more: a forecast has to be quick."""


@dataclass(frozen=True)
class Candidate:
    """A change, and what the gate is then."""

    change: Change
    setting: Setting


def candidates(setting: Setting, causes: Sequence[Cause]) -> Iterator[Candidate]:
    """Single changes of a gate that is red by these causes, the smallest first.

    Small is what leaves the gate's rules as they are and only asks for more evidence; then come rules that bear more,
    then tasks that do not block, and last other numbers of trials. Nothing makes vetoes rarer.
    """
    rules, failures = {cause.rule for cause in causes}, [cause for cause in causes if cause.rule in _FAILURES]
    if failures or Rule.THRESHOLD in rules:
        yield from _of_evidence(setting, failures)
    yield from _of_limits(setting, rules)
    yield from _of_thresholds(setting, causes)
    yield from _of_tasks(setting, failures)
    yield from _of_k(setting, failures)


def _of_evidence(setting: Setting, causes: Sequence[Cause]) -> Iterator[Candidate]:
    regression = setting.plan.gate_policy.regression
    if regression.mode == "strict":
        yield _regression(setting, "mode", "evidence")
        return
    red = set(map(_suite, causes))
    by_trials = {task.failed.suite for task in setting.tasks if task.failed.metric in BY_TRIALS}
    for suite in Suite:
        if suite in red & by_trials and suite not in regression.suites:
            yield _regression(setting, "suites", (*regression.suites, suite))
    if regression.max_trials < _MOST_TRIALS:
        yield _regression(setting, "max_trials", min(2 * regression.max_trials, _MOST_TRIALS))
    for halvings in range(1, _STEPS + 1):
        yield _regression(setting, "alpha", float(f"{regression.alpha / 2**halvings:.2g}"))
    if regression.undecided == "block":
        yield _regression(setting, "undecided", "warn")


def _of_limits(setting: Setting, rules: set[Rule]) -> Iterator[Candidate]:
    limits = setting.plan.gate_policy.limits
    for rule, name in (
        (Rule.LATENCY, "latency_p95_increase_pct"),
        (Rule.LATENCY, "latency_p95_increase_ms"),
        (Rule.COST, "cost_increase_pct"),
    ):
        limit = getattr(limits, name)
        if rule in rules and limit is not None:
            is_percent = name.endswith("_pct")
            steps = [step for step in _PERCENTS if step > limit] if is_percent else [limit * 1.5, limit * 2, limit * 3]
            for step in steps[:_STEPS]:
                yield _gate(setting, ("limits", name), _plain(limit), _plain(step))


def _of_thresholds(setting: Setting, causes: Sequence[Cause]) -> Iterator[Candidate]:
    for cause in causes:
        if cause.rule is Rule.THRESHOLD and cause.suite is not None:
            least = setting.plan.gate_policy.thresholds[cause.suite]
            for share in [share for share in _SHARES if share < least]:
                yield _gate(setting, ("thresholds", str(cause.suite)), _plain(least), share)


def _of_tasks(setting: Setting, causes: Sequence[Cause]) -> Iterator[Candidate]:
    if setting.plan.gate_policy.admission is False and causes:
        wanted = Admission().model_dump()
        yield _gate(setting, ("admission",), "off", wanted)
    safe = {task.name for task in setting.tasks if task.safety}
    check_of = dict.fromkeys(cause.task for cause in causes if cause.task not in safe)
    for task in list(check_of)[:MOST_TASKS]:
        yield _quarantine(setting, task)


def _of_k(setting: Setting, causes: Sequence[Cause]) -> Iterator[Candidate]:
    """Fewer trials under the AND rule, more under the OR rule, for tasks that have their suite's k. Not of suites that
    guard safety: there every trial is a chance to find a violation.
    """
    for suite in dict.fromkeys(map(_suite, causes)):
        of_suite = setting.plan.policy.suites[suite]
        tasks = [task for task in setting.tasks if task.failed.suite is suite]
        metrics = {task.failed.metric for task in tasks}
        if any(task.safety for task in tasks):
            continue
        if metrics == {Metric.PASS_HAT_K} and of_suite.k > 1:
            yield _k(setting, suite, of_suite.k - 1)
        elif metrics == {Metric.PASS_AT_K}:
            yield _k(setting, suite, of_suite.k + 1)


def _suite(cause: Cause) -> Suite:
    return Suite(cause.task.partition("/")[0])


def _regression(setting: Setting, name: str, value: Any) -> Candidate:
    before = getattr(setting.plan.gate_policy.regression, name)
    return _gate(setting, ("regression", name), _shown(before), _shown(value))


def _gate(setting: Setting, path: tuple[str, ...], before: Any, after: Any) -> Candidate:
    """With another value at a path of the gate's policy."""
    plan = setting.plan
    gate = _changed(plan.gate_policy, path, after)
    policy = plan.policy.model_copy(update={"gates": {**plan.policy.gates, plan.gate: gate}})
    change = Change(
        what=f"{'.'.join(path)}: {_text(before)} -> {_text(after)}",
        file="gates.yaml",
        lines=_lines({"gates": {str(plan.gate): _nested(path, after)}}),
    )
    return Candidate(change, replace(setting, plan=plan.model_copy(update={"policy": policy})))


def _changed(gate: GatePolicy, path: tuple[str, ...], value: Any) -> GatePolicy:
    document = gate.model_dump(mode="json")
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return GatePolicy.model_validate(document)


def _quarantine(setting: Setting, task: str) -> Candidate:
    expires = (setting.plan.created_at + timedelta(days=_QUARANTINE_DAYS)).date()
    said = {"task": task, "owner": "WHO REPAIRS IT", "reason": "fails now and then", "issue": "LINK"}
    entry = QuarantineEntry.model_validate({**said, "expires": expires})
    file = setting.plan.quarantine
    quarantine = file.model_copy(update={"tasks": (*file.tasks, entry)})
    change = Change(
        what=f"quarantine of {task}",
        file="quarantine.yaml",
        lines=_lines({"tasks": [{**said, "expires": expires}]}),
    )
    return Candidate(change, replace(setting, plan=setting.plan.model_copy(update={"quarantine": quarantine})))


def _k(setting: Setting, suite: Suite, k: int) -> Candidate:
    plan, before = setting.plan, setting.plan.policy.suites[suite]
    suites = {**plan.policy.suites, suite: before.model_copy(update={"k": k})}
    policy = plan.policy.model_copy(update={"suites": suites})
    tasks = tuple(
        task.model_copy(update={"k": k, "sequential": policy.suites[suite].sequential_for(k, task.metric)})
        if (task.suite, task.k) == (suite, before.k)
        else task
        for task in plan.tasks
    )
    assumed = tuple(
        one.with_k(k, policy) if (one.failed.suite, one.failed.k) == (suite, before.k) else one for one in setting.tasks
    )
    change = Change(
        what=f"k of {suite}: {before.k} -> {k}",
        file="gates.yaml",
        lines=_lines({"suites": {str(suite): {"k": k}}}),
    )
    return Candidate(change, Setting(plan.model_copy(update={"policy": policy, "tasks": tasks}), assumed))


def _nested(path: tuple[str, ...], value: Any) -> Any:
    return _nested(path[:-1], {path[-1]: value}) if path else value


def _lines(document: dict[str, Any]) -> tuple[str, ...]:
    text = yaml.safe_dump(document, default_flow_style=None, sort_keys=False, allow_unicode=True, width=1000)
    return tuple(text.splitlines())


def _shown(value: Any) -> Any:
    """As JSON has it."""
    return list(map(str, value)) if isinstance(value, tuple) else value


def _plain(number: float) -> float | int:
    """Without a fraction where there is none."""
    return int(number) if number == int(number) else number


def _text(value: Any) -> str:
    """In a line, as YAML has it."""
    if isinstance(value, str):
        return value
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000)
    return str(text).removesuffix("...\n").strip()


@dataclass(frozen=True)
class Improved:
    """A policy that differs by some changes, and what its gate will do."""

    changes: tuple[Change, ...]
    forecast: SettingForecast


def improve(now: SettingForecast, evaluate: Callable[[Setting], SettingForecast], target: float) -> Improved:
    """The first single change that brings false reds down to the target, or else the first pair of changes.

    Where neither does, what leaves the fewest false reds; without changes where none leaves fewer, and where vetoes
    alone are too many: no change makes them rarer.
    """
    if now.vetoed > target:
        return Improved((), now)
    singles: list[Improved] = []
    for one in _after(Improved((), now), evaluate):
        if one.forecast.red <= target:
            return one
        singles.append(one)
    fewest = sorted(singles, key=attrgetter("forecast.red"))[: _FIRST_OF_PAIRS - 1]
    pairs: list[Improved] = []
    tried = (both for first in dict.fromkeys([*singles[:1], *fewest]) for both in _after(first, evaluate))
    for both in islice(tried, _MOST_PAIRS):
        if both.forecast.red <= target:
            return both
        pairs.append(both)
    best = min([*singles, *pairs], key=attrgetter("forecast.red"), default=None)
    return best if best is not None and best.forecast.red < now.red else Improved((), now)


def _after(before: Improved, evaluate: Callable[[Setting], SettingForecast]) -> Iterator[Improved]:
    """With every change more that is of something else."""
    changed = {_subject(change) for change in before.changes}
    for candidate in list(candidates(before.forecast.setting, before.forecast.causes())):
        if _subject(candidate.change) not in changed:
            yield Improved((*before.changes, candidate.change), evaluate(candidate.setting))


def _subject(change: Change) -> str:
    return change.what.partition(":")[0]
