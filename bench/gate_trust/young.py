"""Section y: the first gates of a team, whose baseline is young: unchanged agents, and a task that falls to 0."""

from dataclasses import replace

import numpy as np

from bench.gate_trust.figures import Block, Target, share
from bench.gate_trust.judging import Judge
from bench.gate_trust.regression_tests import RegressionTests
from bench.gate_trust.setting import Scale, shipped_regression
from bench.gate_trust.trust import MOST_RED
from bench.gate_trust.worlds import Booleans, World, drawn
from passgate.tasks.history.baseline import state_of
from passgate.tasks.model.baseline import BaselineState

GATES = 10
_CAUGHT = 0.95
_RUNS_THAT_SHOW = 2
"""From so many runs of three trials on a fall to 0 has to be found."""


def first_gates(name: str, world: World, scale: Scale) -> Block:
    """Gates whose baseline has no run, one run, two runs and so on."""
    figures = []
    for runs in range(GATES):
        rng = scale.generator("young", world, runs)
        gates = drawn(world, scale, rng, runs)
        judge = Judge(gates, RegressionTests(world.k, shipped_regression().max_trials))
        red = judge.judged(gates.now(gates.rates, judge.most, rng)).red
        figures.append(share(f"baseline of {runs} runs: red", red, target=Target(MOST_RED)))
        each, fallen = np.arange(len(gates.rates)), rng.integers(world.tasks, size=len(gates.rates))
        rates = gates.rates.copy()
        greens: Booleans = np.all(gates.before[each, fallen], axis=2)
        green = np.array([state_of(of_task.tolist()) is BaselineState.GREEN for of_task in greens]) | (runs == 0)
        rates[each, fallen] = 0
        caught = judge.judged(replace(gates, rates=rates).now(rates, judge.most, rng)).red
        target = Target(_CAUGHT, "at least") if runs >= _RUNS_THAT_SHOW else None
        figures.append(share(f"baseline of {runs} runs: a green task falls to 0", caught[green], target=target))
    return Block(f"{name}: {world}, the first gates", figures)
