"""What `passgate forecast` says of the agents of section a, by its own functions."""

import numpy as np

from bench.gate_trust.figures import Block, exactly
from bench.gate_trust.worlds import World, plan_of
from passgate.tasks.commands.forecast import forecast
from passgate.tasks.forecasts.assumptions import Basis
from passgate.tasks.model.baseline import Baseline


def forecast_of(name: str, world: World) -> Block:
    """How often the gate is red on the unchanged agent, and its confirming trials as a share of the planned ones."""
    plan = plan_of(world)
    # Where the rates are drawn, the quantiles of their distribution, Beta(8, 1), stand for them.
    rates = world.rates or tuple(((np.arange(world.tasks) + 0.5) / world.tasks) ** (1 / 8))
    given = {task.name: float(rate) for task, rate in zip(plan.tasks, rates, strict=True)}
    basis = Basis(Baseline(branch="main", tasks={}), given, "assumed", spread=world.run_effect)
    found = forecast(plan, basis)
    confirming = found.effort.confirming / found.effort.planned
    return Block(
        f"{name}: forecast of {world}",
        [
            exactly("unchanged: red, by the forecast", found.red),
            exactly("unchanged: confirming trials, by the forecast", confirming),
        ],
    )
