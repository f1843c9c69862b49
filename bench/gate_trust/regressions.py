"""Sections a and b: how often the gate is red for nothing, and how surely it finds a task that has fallen."""

from collections.abc import Iterator
from dataclasses import replace

from bench.gate_trust import exact
from bench.gate_trust.agreement import agreement
from bench.gate_trust.figures import Block, Figure, Target, mean, share
from bench.gate_trust.regression_tests import RegressionTests
from bench.gate_trust.setting import FALLS, Fall, Scale, Setting, shipped_regression
from bench.gate_trust.simulate import Simulated, simulate

MOST_EXTRA = 0.2
"""Confirming trials at 0.99, as a share of the planned ones."""
CAUGHT = {0.5: 0.95, 0.7: 0.9}
"""The share of what strict catches, by what the task has fallen to."""
_SAMPLE = 12


def unchanged(
    name: str, setting: Setting, scale: Scale, most_red: float | None = None, most_extra: float | None = None
) -> Block:
    """Nothing has changed: every red is a false one."""
    tests, regression = RegressionTests(setting.k), shipped_regression()
    (found,) = simulate(setting, [regression], tests, scale)
    precisely = exact.unchanged(setting, regression, tests)
    blocks = regression.undecided == "block"
    red = precisely.red if blocks else precisely.blocked
    figures = [
        share("red, strict", found.strict, exact=setting.strict_red()),
        share("red, evidence", found.red(regression.undecided), exact=red, target=_at_most(most_red)),
        share("red, evidence and admission as shipped", found.shipped),
        mean("confirming trials, run in rounds", found.extra_run, target=_at_most(most_extra)),
        mean("confirming trials, one by one", found.extra, exact=precisely.extra),
    ]
    line, missed = _checked(setting, tests, scale, None, name)
    return Block(f"{name}: {_described(setting)}, unchanged", figures, [line], missed)


def fallen(name: str, setting: Setting, scale: Scale) -> Block:
    """One task has fallen. Its failure is caught when it blocks; strict, when any of its first k trials fails."""
    tests, regression = RegressionTests(setting.k), shipped_regression()
    figures: list[Figure] = []
    lines: list[str] = []
    missed: list[str] = []
    for fall in FALLS:
        able = len(setting.can_fall(fall))
        if not able:
            lines.append(f"no task passes at least {fall.above:.3g} of its trials: none can fall to {fall.to}")
            continue
        (found,) = simulate(setting, [regression], tests, scale, fall)
        figures += _catches(setting, found, exact.caught(setting, regression, tests, fall), fall)
        if able < len(setting.rates):
            lines.append(f"to {fall.to}: {able} of {len(setting.rates)} tasks, those of at least {fall.above:.3g}")
    if figures:
        line, missed = _checked(setting, tests, scale, next(fall for fall in FALLS if setting.can_fall(fall)), name)
        lines.append(line)
    return Block(f"{name}: {_described(setting)}, one task has fallen", figures, lines, missed)


def _catches(setting: Setting, found: Simulated, precisely: exact.Caught, fall: Fall) -> Iterator[Figure]:
    regression, strictly = shipped_regression(), fall.strictly_caught(setting.k)
    blocks = regression.undecided == "block"
    certain = precisely.or_undecided if blocks else precisely.fallen
    least = CAUGHT.get(fall.to)
    target = Target(least, "at least") if least is not None else None
    caught = found.catches(regression.undecided)
    yield share(f"to {fall.to}: caught", caught, exact=certain)
    yield share(f"to {fall.to}: of what strict catches", caught, exact=certain / strictly, target=target, of=strictly)
    yield share(f"to {fall.to}: the same with admission as shipped", found.caught_shipped, of=strictly)
    yield mean(f"to {fall.to}: confirming trials of that task", found.spent, share=False)


def _checked(
    setting: Setting, tests: RegressionTests, scale: Scale, fall: Fall | None, name: str
) -> tuple[str, list[str]]:
    """Some gates decided by the gate itself."""
    sample = replace(scale, gates=min(_SAMPLE, scale.gates))
    found = agreement(setting, tests, sample, fall)
    line = f"decided by the gate's own code from trials and history: {found.same} of {found.gates} gates the same"
    return line, [] if found.same == found.gates else [f"{name}: {line}"]


def _at_most(bound: float | None) -> Target | None:
    return Target(bound) if bound is not None else None


def _described(setting: Setting) -> str:
    tasks, lowest, highest = len(setting.rates), min(setting.rates), max(setting.rates)
    rates = f"{lowest}" if lowest == highest else f"{lowest:.3g} to {highest:.3g}"
    return f"{tasks} golden tasks x {setting.k} at {rates}, {setting.runs * setting.k} baseline trials each"
