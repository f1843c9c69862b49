"""Find the smallest change of policy that brings the false-failure rate down to the target."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import yaml
from pydantic_core import to_jsonable_python

from passgate.tasks.forecasts.assumptions import Setting
from passgate.tasks.forecasts.setting_forecast import SettingForecast
from passgate.tasks.model.forecast import Cause, Change
from passgate.tasks.model.policy import Admission, GatePolicy, QuarantineEntry, Rule
from passgate.tasks.model.task import BY_TRIALS, Metric, Suite

_FAILURES: Final = frozenset({Rule.GOLDEN_REGRESSION, Rule.TASK_FAILED})
MOST_TASKS: Final = 3  # tasks that are tried in quarantine, each alone
_PERCENTS: Final = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 75.0, 100.0)
_SHARES: Final = (0.95, 0.9, 0.8)
_STEPS: Final = 3
_MOST_TRIALS: Final = 500
_QUARANTINE_DAYS: Final = 30
# A second change is tried with so many single ones: the smallest, and those that leave the fewest false failures.
_FIRST_OF_PAIRS: Final = 4
_MOST_PAIRS: Final = 30  # some take a second or more, and a forecast has to be quick


@dataclass(frozen=True)
class Candidate:
    """A change, and the setting with it."""

    change: Change
    setting: Setting


def candidates(setting: Setting, causes: Sequence[Cause]) -> Iterator[Candidate]:
    """Yield single changes of a gate that is red by these causes, the smallest first.

    The smallest leave the gate's rules as they are and only ask for more evidence. Then come weaker rules, then tasks
    that do not block, and last other numbers of trials. No change makes vetoes rarer.
    """
    rules, failures = {cause.rule for cause in causes}, [cause for cause in causes if cause.rule in _FAILURES]
    if failures or rules & {Rule.THRESHOLD, Rule.SUITE_REGRESSION}:
        yield from _evidence_changes(setting, failures)
    yield from _limit_changes(setting, rules)
    for cause in causes:
        if cause.rule is Rule.THRESHOLD and cause.suite is not None:
            least = setting.plan.gate_policy.thresholds[cause.suite]
            for share in [share for share in _SHARES if share < least]:
                yield _change_policy(setting, ("thresholds", str(cause.suite)), least, share)
    if setting.plan.gate_policy.admission is False and failures:
        yield _change_policy(setting, ("admission",), "off", Admission().model_dump())
    safe = {task.name for task in setting.tasks if task.safety}
    names = dict.fromkeys(cause.task for cause in failures if cause.task not in safe)
    yield from (_quarantine(setting, task) for task in islice(names, MOST_TASKS))
    yield from _k_changes(setting, failures)


def _evidence_changes(setting: Setting, causes: Sequence[Cause]) -> Iterator[Candidate]:
    regression = setting.plan.gate_policy.regression

    def change(name: str, value: Any) -> Candidate:
        return _change_policy(setting, ("regression", name), getattr(regression, name), value)

    if regression.mode == "strict":
        yield change("mode", "evidence")
        return
    red = set(_suites(causes))
    by_trials = {task.failed.suite for task in setting.tasks if task.failed.metric in BY_TRIALS}
    for suite in Suite:
        if suite in red & by_trials and suite not in regression.suites:
            yield change("suites", (*regression.suites, suite))
    if regression.max_trials < _MOST_TRIALS:
        yield change("max_trials", min(2 * regression.max_trials, _MOST_TRIALS))
    for halvings in range(1, _STEPS + 1):
        yield change("alpha", float(f"{regression.alpha / 2**halvings:.2g}"))
    if regression.undecided == "block" and setting.young == "block":
        yield change("undecided", "warn")


def _limit_changes(setting: Setting, rules: set[Rule]) -> Iterator[Candidate]:
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
                yield _change_policy(setting, ("limits", name), limit, step)


def _k_changes(setting: Setting, causes: Sequence[Cause]) -> Iterator[Candidate]:
    """Yield fewer trials under the AND rule and more under the OR rule, for tasks that have their suite's k."""
    for suite in _suites(causes):
        k = setting.plan.policy.suites[suite].k
        tasks = [task for task in setting.tasks if task.failed.suite is suite]
        metrics = {task.failed.metric for task in tasks}
        # In a suite that guards safety every trial is a chance to find a violation.
        is_safety = any(task.safety for task in tasks)
        if metrics == {Metric.PASS_HAT_K} and k > 1 and not is_safety:
            yield _change_k(setting, suite, k - 1)
        elif metrics == {Metric.PASS_AT_K} and not is_safety:
            yield _change_k(setting, suite, k + 1)


def _suites(causes: Sequence[Cause]) -> dict[Suite, None]:
    """Return the suites of tasks that make the gate red, in the order of the causes."""
    return dict.fromkeys(Suite(cause.task.partition("/")[0]) for cause in causes)


def _change_policy(setting: Setting, path: tuple[str, ...], before: Any, after: Any) -> Candidate:
    """Return the setting with another value at a path of the gate's policy."""
    plan, plain = setting.plan, map(to_jsonable_python, (before, after))
    # As a person writes them: no fraction of 0.
    before, after = (int(one) if isinstance(one, float) and one.is_integer() else one for one in plain)
    document = plan.gate_policy.model_dump(mode="json")
    place, nested = document, after
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = after
    for key in reversed(path):
        nested = {key: nested}
    gates = {**plan.policy.gates, plan.gate: GatePolicy.model_validate(document)}
    policy = plan.policy.model_copy(update={"gates": gates})
    change = Change(
        what=f"{'.'.join(path)}: {_yaml_text(before)} -> {_yaml_text(after)}",
        file="gates.yaml",
        lines=_yaml_lines({"gates": {str(plan.gate): nested}}),
    )
    return Candidate(change, replace(setting, plan=plan.model_copy(update={"policy": policy})))


def _quarantine(setting: Setting, task: str) -> Candidate:
    expires = (setting.plan.created_at + timedelta(days=_QUARANTINE_DAYS)).date()
    # Who repairs it and where that is followed only the user knows: the capitals show what to fill in.
    keys = {"task": task, "owner": "WHO REPAIRS IT", "reason": "fails now and then", "issue": "LINK"}
    document = {**keys, "expires": expires}
    file = setting.plan.quarantine
    quarantine = file.model_copy(update={"tasks": (*file.tasks, QuarantineEntry.model_validate(document))})
    lines = _yaml_lines({"tasks": [document]})
    change = Change(what=f"quarantine of {task}", file="quarantine.yaml", lines=lines)
    return Candidate(change, replace(setting, plan=setting.plan.model_copy(update={"quarantine": quarantine})))


def _change_k(setting: Setting, suite: Suite, k: int) -> Candidate:
    plan, before = setting.plan, setting.plan.policy.suites[suite]
    suites = {**plan.policy.suites, suite: before.model_copy(update={"k": k})}
    policy = plan.policy.model_copy(update={"suites": suites})
    # A task with a k of its own keeps it.
    tasks = tuple(
        task.model_copy(update={"k": k}) if (task.suite, task.k) == (suite, before.k) else task for task in plan.tasks
    )
    counts = {"k": k, "planned": k, "failed": k}
    assumed = tuple(
        replace(one, failed=one.failed.model_copy(update=counts)) if one.failed.k != task.k else one
        for one, task in zip(setting.tasks, tasks, strict=True)
    )
    lines = _yaml_lines({"suites": {str(suite): {"k": k}}})
    change = Change(what=f"k of {suite}: {before.k} -> {k}", file="gates.yaml", lines=lines)
    plan = plan.model_copy(update={"policy": policy, "tasks": tasks})
    return Candidate(change, replace(setting, plan=plan, tasks=assumed))


def _yaml_lines(document: dict[str, Any]) -> tuple[str, ...]:
    text = yaml.safe_dump(document, default_flow_style=None, sort_keys=False, allow_unicode=True, width=1000)
    return tuple(text.splitlines())


def _yaml_text(value: Any) -> str:
    """Return a value as YAML writes it in a line, strings without quotes."""
    if isinstance(value, str):
        return value
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000)
    return str(text).removesuffix("...\n").strip()  # YAML ends a document that is a single number so


@dataclass(frozen=True)
class Improved:
    """A policy that differs by some changes, and the forecast of its gate."""

    changes: tuple[Change, ...]
    forecast: SettingForecast


def improve(now: SettingForecast, evaluate: Callable[[Setting], SettingForecast], target: float) -> Improved:
    """Return the first single change that brings the false-failure rate down to the target, or else the first pair. If
    neither does, return those that leave the fewest false failures; no changes if none leaves fewer.
    """
    # No change makes vetoes rarer, so nothing helps where they alone are too many.
    if now.vetoed > target:
        return Improved((), now)
    tried: list[Improved] = []

    def attempts() -> Iterator[Improved]:
        yield from _add_change(Improved((), now), evaluate)
        fewest = sorted(tried, key=attrgetter("forecast.red"))[: _FIRST_OF_PAIRS - 1]
        firsts = dict.fromkeys([*tried[:1], *fewest])
        yield from islice((both for first in firsts for both in _add_change(first, evaluate)), _MOST_PAIRS)

    for one in attempts():
        if one.forecast.red <= target:
            return one
        tried.append(one)
    best = min(tried, key=attrgetter("forecast.red"), default=None)
    return best if best is not None and best.forecast.red < now.red else Improved((), now)


def _add_change(before: Improved, evaluate: Callable[[Setting], SettingForecast]) -> Iterator[Improved]:
    """Yield the policy with one change more, of something that it has not changed yet."""
    changed = {change.what.partition(":")[0] for change in before.changes}
    for candidate in list(candidates(before.forecast.setting, before.forecast.causes())):
        if candidate.change.what.partition(":")[0] not in changed:
            yield Improved((*before.changes, candidate.change), evaluate(candidate.setting))
