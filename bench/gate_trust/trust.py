"""Section a: what the gate does with agents of known pass rates, unchanged and worse."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from bench.gate_trust.agreement import agreement
from bench.gate_trust.figures import Block, Figure, Target, exactly, mean, share
from bench.gate_trust.forecasts import beside, forecast_of
from bench.gate_trust.setting import Scale
from bench.gate_trust.worlds import Booleans, Gates, Judged, World, drawn
from passgate.tasks.forecasts.drawn_trials import shifted_rates
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
    # The tests are held to their targets by all the trials that they ask for; what a run may spend is beside them.
    unchanged, shipped = gates.judged(gates.rates, bounded=False), gates.judged(gates.rates)
    most = MOST_RED_WITH_RUN_EFFECTS if world.run_effect else MOST_RED
    extra, spent = _extra_trials(unchanged, world), _extra_trials(shipped, world)
    red = share("unchanged: red, as shipped", shipped.red, target=Target(most))
    confirming = mean("unchanged: confirming trials, as shipped", spent, target=Target(1.0))
    forecast = forecast_of(world)
    figures = [
        share("unchanged: red, strict", _strictly_red(gates)),
        share("unchanged: red", unchanged.red, target=Target(most)),
        share("unchanged: red by a task", np.asarray(unchanged.blocked.any(axis=1))),
        share("unchanged: red by the suite alone", unchanged.suite_fallen),
        mean("unchanged: confirming trials", extra, target=_extra(world)),
        red,
        confirming,
        *beside(forecast, red, confirming),
    ]
    if not world.run_effect:
        figures += _one_task(gates, rng)
        figures += _whole_agent(gates, forecast)
    line, missed = _checked(gates, scale)
    return Block(f"{name}: {world}", figures, [line], missed)


def _strictly_red(gates: Gates) -> Booleans:
    """Return in which gates any planned trial fails."""
    world, passing = gates.world, zip(gates.rates, gates.draws, strict=True)
    return np.array(
        [
            bool((draws.outcomes(world.k) >= shifted_rates(rates[None], draws.shifts, world.run_effect)).any())
            for rates, draws in passing
        ]
    )


def _extra_trials(judged: Judged, world: World) -> npt.NDArray[np.float64]:
    """The confirming trials of each gate, as a share of the planned ones."""
    return np.asarray((judged.trials - world.k).sum(axis=1) / (world.k * world.tasks))


def _extra(world: World) -> Target | None:
    return Target(MOST_EXTRA[world.name]) if world.name in MOST_EXTRA and not world.run_effect else None


def _one_task(gates: Gates, rng: np.random.Generator) -> Iterator[Figure]:
    """One task of each gate falls, any of them."""
    each, fallen = np.arange(len(gates.rates)), rng.integers(gates.world.tasks, size=len(gates.rates))
    before = gates.rates[each, fallen]
    for label, factor, least in (("to 0", 0.0, TO_ZERO), ("to half", 0.5, TO_HALF)):
        rates = gates.rates.copy()
        rates[each, fallen] *= factor
        caught = gates.judged(rates, bounded=False).blocked[each, fallen]
        spent = gates.judged(rates).blocked[each, fallen]
        for low, high in pairwise(BANDS):
            inside = (before >= low) & (before < high)
            if inside.sum() >= 2:
                target = Target(least, "at least") if low >= FROM[label] else None
                name = f"a task from {low:g} to {min(high, 1):g} falls {label}"
                yield share(name, caught[inside], target=target)
                yield share(f"{name}, as shipped", spent[inside])


def _whole_agent(gates: Gates, forecast: SettingForecast) -> Iterator[Figure]:
    if gates.world.name in WHOLE:
        to = WHOLE[gates.world.name]
        rates = np.full_like(gates.rates, to)
        target = Target(CAUGHT_WHOLE[gates.world.name], "at least")
        spent = share(f"all tasks fall to {to}: red, as shipped", gates.judged(rates).red)
        said = forecast.red_if_all_keep(to / gates.world.rates[0])
        off = max(spent.low - said, said - spent.high, 0.0)
        yield share(f"all tasks fall to {to}: red", gates.judged(rates, bounded=False).red, target=target)
        yield spent
        yield exactly(f"all tasks fall to {to}: red, by the forecast", said)
        yield exactly(f"all tasks fall to {to}: red, forecast off by", off, target=Target(MOST_OFF_OF_FALLS))


def _checked(gates: Gates, scale: Scale) -> tuple[str, list[str]]:
    """Some gates decided by the gate itself, with worse tasks so that there is something to decide."""
    count = min(_SAMPLE, scale.gates)
    same = agreement(gates, gates.rates[:count] * np.float32(0.9))
    line = f"decided by the gate's own code from trials and history: {same} of {count} gates the same"
    return line, [] if same == count else [f"{gates.world}: {line}"]
