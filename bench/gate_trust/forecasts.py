"""What `passgate forecast` says of the agents of section a, by its own functions, beside what was simulated."""

from collections.abc import Iterator
from math import sqrt

import numpy as np

from bench.gate_trust.figures import Figure, Target, exactly
from bench.gate_trust.worlds import World, plan_of
from passgate.tasks.commands.forecast import setting_of
from passgate.tasks.forecasts.assumptions import Basis
from passgate.tasks.forecasts.drawn_forecast import foresee
from passgate.tasks.forecasts.setting_forecast import NO_LIMITS, SettingForecast
from passgate.tasks.forecasts.task_forecast import RegressionTests
from passgate.tasks.model.baseline import Baseline

MOST_ERRORS = 3.0
"""How many standard errors of both may lie between the simulated share and the forecast."""
MOST_OFF = 0.1
"""By what share the confirming trials of the forecast may differ."""


def forecast_of(world: World) -> SettingForecast:
    """The forecast of the agent, whose tasks have no baseline."""
    plan = plan_of(world)
    # Where the rates are drawn, the quantiles of their distribution, Beta(8, 1), stand for them.
    rates = np.array(world.rates or ((np.arange(world.tasks) + 0.5) / world.tasks) ** (1 / 8))
    given = {task.name: float(rate) for task, rate in zip(plan.tasks, world.mean_rates(rates), strict=True)}
    basis = Basis(Baseline(branch="main", tasks={}), given, "assumed", spread=world.run_effect)
    return foresee(setting_of(plan, basis), NO_LIMITS, RegressionTests())


def beside(found: SettingForecast, red: Figure, confirming: Figure) -> Iterator[Figure]:
    """The forecast of an unchanged agent, and how far it is from the simulated figures."""
    planned = sum(task.failed.k for task in found.setting.tasks)
    extra = found.confirming / planned
    # Few gates tell the simulated figure less well, so what lies within its interval is not off.
    off = max(confirming.low - extra, extra - confirming.high, 0.0) / confirming.simulated
    yield exactly("unchanged: red, by the forecast", found.red, error=found.red_error)
    yield exactly(
        "unchanged: red, standard errors between", _errors_between(found, red), target=Target(MOST_ERRORS), share=False
    )
    yield exactly("unchanged: confirming trials, by the forecast", extra)
    yield exactly("unchanged: confirming trials, forecast off by", off, target=Target(MOST_OFF))


def _errors_between(found: SettingForecast, red: Figure) -> float:
    off = found.red - red.simulated
    side = red.high - red.simulated if off > 0 else red.simulated - red.low
    return abs(off) / sqrt((side / 1.96) ** 2 + found.red_error**2)
