"""Section y: the first gates of a team, whose baseline is young: unchanged agents, and a task that falls to 0."""

import numpy as np

from bench.gate_trust.figures import Block, Target, share
from bench.gate_trust.setting import Scale
from bench.gate_trust.trust import MOST_RED
from bench.gate_trust.worlds import World, drawn
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
        red = gates.judged(gates.rates).red
        figures.append(share(f"baseline of {runs} runs: red", red, target=Target(MOST_RED)))
        each, fallen = np.arange(len(gates.rates)), rng.integers(world.tasks, size=len(gates.rates))
        rates = gates.rates.copy()
        names = [gates.settings[0].tasks[place].name for place in fallen]
        states = [baseline.of(name).state for baseline, name in zip(gates.baselines, names, strict=True)]
        green = np.array([state is BaselineState.GREEN for state in states]) | (runs == 0)
        rates[each, fallen] = 0
        caught = gates.judged(rates).red
        target = Target(_CAUGHT, "at least") if runs >= _RUNS_THAT_SHOW else None
        figures.append(share(f"baseline of {runs} runs: a green task falls to 0", caught[green], target=target))
    return Block(f"{name}: {world}, the first gates", figures)
