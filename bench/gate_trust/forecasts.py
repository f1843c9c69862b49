"""What `passgate forecast` says of the agents of section a, by its own functions, beside what was simulated."""

from collections.abc import Iterator
from math import hypot

from bench.gate_trust.figures import Figure, Target, exactly
from bench.gate_trust.worlds import World, plan_of, setting_of_world
from passgate.tasks.forecasts.setting_forecast import SettingForecast, Simulation

GATES = 10_000
"""Simulated runs of a forecast: as many as the command simulates."""
MOST_ERRORS = 3.0
"""How many standard errors of both may lie between a simulated figure and its forecast."""


def forecast_of(world: World) -> SettingForecast:
    """Forecast the agent, whose tasks have no baseline."""
    return SettingForecast(setting_of_world(world, plan_of(world)), Simulation(GATES, seed=0))


def beside(found: SettingForecast, red: Figure, confirming: Figure) -> Iterator[Figure]:
    """Yield the forecast of an unchanged agent, and how far it is from the simulated figures."""
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
