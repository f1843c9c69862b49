"""Section a: what the gate does with agents of known pass rates, unchanged and worse."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from bench.gate_trust.agreement import agreement
from bench.gate_trust.figures import Block, Figure, Target, exactly, mean, share
from bench.gate_trust.forecasts import beside, forecast_of
from bench.gate_trust.judging import Judge, Judged
from bench.gate_trust.regression_tests import RegressionTests
from bench.gate_trust.setting import Scale, shipped_regression
from bench.gate_trust.worlds import Gates, World, drawn
from passgate.tasks.forecasts.setting_forecast import SettingForecast

MOST_RED, MOST_RED_WITH_RUN_EFFECTS = 0.02, 0.05
MOST_EXTRA = {"0.99": 0.2}
"""Confirming trials, as a share of the planned ones."""
TO_ZERO, TO_HALF = 0.95, 0.8
BANDS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.01)
"""Of the rates from which a task falls."""
FROM = {"to 0": 0.2, "to half": 0.8}
"""The rate from which 20 runs, `max_trials` and alpha allow the target."""
WHOLE = {"0.99": 0.95, "0.95": 0.85}
CAUGHT_WHOLE = {"0.99": 0.6, "0.95": 0.95}
MOST_OFF_OF_FALLS = 0.05
_SAMPLE = 8


def trusted(name: str, world: World, scale: Scale) -> Block:
    """How often the gate is red on an unchanged agent, how often it finds one that has fallen, and what that takes."""
    rng = scale.generator("trust", world)
    gates = drawn(world, scale, rng)
    tests = RegressionTests(world.k, shipped_regression().max_trials)
    judge = Judge(gates, tests)
    now = gates.now(gates.rates, tests.most, rng)
    # The tests are held to their targets by all the trials that they ask for; what a run may spend is beside them.
    unchanged, shipped = judge.judged(now, bounded=False), judge.judged(now)
    most = MOST_RED_WITH_RUN_EFFECTS if world.run_effect else MOST_RED
    strictly = ~now[..., : world.k].all(axis=(1, 2))
    extra = _extra_trials(unchanged, world)
    red = share("unchanged: red", unchanged.red, target=Target(most))
    confirming = mean("unchanged: confirming trials", extra, target=_extra(world))
    forecast = forecast_of(world)
    figures = [
        share("unchanged: red, strict", np.asarray(strictly)),
        red,
        share("unchanged: red by a task", np.asarray(unchanged.blocked.any(axis=1))),
        share("unchanged: red by the suite alone", unchanged.suite_fallen),
        confirming,
        share("unchanged: red, as a run may spend", shipped.red, target=Target(most)),
        mean("unchanged: confirming trials, as a run may spend", _extra_trials(shipped, world), target=Target(1.0)),
        *beside(forecast, red, confirming),
    ]
    if not world.run_effect:
        figures += _one_task(gates, judge, rng, tests.most)
        figures += _whole_agent(gates, judge, rng, tests.most, forecast)
    line, missed = _checked(gates, judge, rng, scale)
    return Block(f"{name}: {world}", figures, [line], missed)


def _extra_trials(judged: Judged, world: World) -> npt.NDArray[np.float64]:
    """The confirming trials of each gate, as a share of the planned ones."""
    return np.asarray((judged.trials - world.k).sum(axis=1) / (world.k * world.tasks))


def _extra(world: World) -> Target | None:
    return Target(MOST_EXTRA[world.name]) if world.name in MOST_EXTRA and not world.run_effect else None


def _one_task(gates: Gates, judge: Judge, rng: np.random.Generator, most: int) -> Iterator[Figure]:
    """One task of each gate falls, any of them."""
    each, fallen = np.arange(len(gates.rates)), rng.integers(gates.world.tasks, size=len(gates.rates))
    before = gates.rates[each, fallen]
    for label, factor, least in (("to 0", 0.0, TO_ZERO), ("to half", 0.5, TO_HALF)):
        rates = gates.rates.copy()
        rates[each, fallen] *= factor
        now = gates.now(rates, most, rng)
        caught = judge.judged(now, bounded=False).blocked[each, fallen]
        spent = judge.judged(now).blocked[each, fallen]
        for low, high in pairwise(BANDS):
            inside = (before >= low) & (before < high)
            if inside.sum() >= 2:
                target = Target(least, "at least") if low >= FROM[label] else None
                name = f"a task from {low:g} to {min(high, 1):g} falls {label}"
                yield share(name, caught[inside], target=target)
                yield share(f"{name}, as a run may spend", spent[inside])


def _whole_agent(
    gates: Gates, judge: Judge, rng: np.random.Generator, most: int, forecast: SettingForecast
) -> Iterator[Figure]:
    if gates.world.name in WHOLE:
        to = WHOLE[gates.world.name]
        now = gates.now(np.full_like(gates.rates, to), most, rng)
        red = judge.judged(now, bounded=False).red
        target = Target(CAUGHT_WHOLE[gates.world.name], "at least")
        found = share(f"all tasks fall to {to}: red", red, target=target)
        said = forecast.red_if_all_keep(to / gates.world.rates[0])
        off = max(found.low - said, said - found.high, 0.0)
        yield found
        yield share(f"all tasks fall to {to}: red, as a run may spend", judge.judged(now).red)
        yield exactly(f"all tasks fall to {to}: red, by the forecast", said)
        yield exactly(f"all tasks fall to {to}: red, forecast off by", off, target=Target(MOST_OFF_OF_FALLS))


def _checked(gates: Gates, judge: Judge, rng: np.random.Generator, scale: Scale) -> tuple[str, list[str]]:
    """Some gates decided by the gate itself, with worse tasks so that there is something to decide."""
    count = min(_SAMPLE, scale.gates)
    few = replace(gates, rates=gates.rates[:count] * np.float32(0.9), shift=gates.shift[:count])
    now = few.now(few.rates, 2 * judge.most, rng)
    same = agreement(gates, judge.judged(now), now)
    line = f"decided by the gate's own code from trials and history: {same} of {count} gates the same"
    return line, [] if same == count else [f"{gates.world}: {line}"]
