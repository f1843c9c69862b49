"""What `passgate forecast` says of the agents of section a, by its own functions, beside what was simulated."""

from collections.abc import Iterator
from math import hypot

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
"""How many standard errors of both may lie between a simulated figure and its forecast."""


def forecast_of(world: World) -> SettingForecast:
    """The forecast of the agent, whose tasks have no baseline."""
    plan = plan_of(world, max_confirming=100.0)
    # Where the rates are drawn, the quantiles of their distribution, Beta(8, 1), stand for them.
    rates = np.array(world.rates or ((np.arange(world.tasks) + 0.5) / world.tasks) ** (1 / 8))
    given = {task.name: float(rate) for task, rate in zip(plan.tasks, world.mean_rates(rates), strict=True)}
    basis = Basis(Baseline(branch="main", tasks={}), given, "assumed", spread=world.run_effect)
    return foresee(setting_of(plan, basis), NO_LIMITS, RegressionTests())


def beside(found: SettingForecast, red: Figure, confirming: Figure) -> Iterator[Figure]:
    """The forecast of an unchanged agent, and how far it is from the simulated figures."""
    planned = sum(task.failed.k for task in found.setting.tasks)
    extra, error = found.confirming / planned, found.confirming_error / planned
    target = Target(MOST_ERRORS)
    yield exactly("unchanged: red, by the forecast", found.red, error=found.red_error)
    between = _errors_between(red, found.red, found.red_error)
    yield exactly("unchanged: red, standard errors between", between, target=target, share=False)
    yield exactly("unchanged: confirming trials, by the forecast", extra, error=error)
    between = _errors_between(confirming, extra, error)
    yield exactly("unchanged: confirming trials, standard errors between", between, target=target, share=False)


def _errors_between(simulated: Figure, said: float, error: float) -> float:
    off = said - simulated.simulated
    side = simulated.high - simulated.simulated if off > 0 else simulated.simulated - simulated.low
    return abs(off) / hypot(side / 1.96, error)
