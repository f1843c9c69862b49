"""Section b: how often a task that falls is caught, and how often any test of as many trials could catch it."""

from collections.abc import Iterator
from math import comb

import numpy as np

from bench.gate_trust.figures import Block, Figure, exactly
from bench.gate_trust.operation import operation, regression_test
from bench.gate_trust.setting import RUNS, shipped_gate
from passgate.tasks.gates.evidence import alpha_of_one
from passgate.tasks.stats.regression import Before
from passgate.tasks.stats.stopping_rules import at_baseline, at_rate

FALLS = {
    "0": (0.0, (0.1, 0.15, 0.2, 0.3)),
    "half": (0.5, (0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 0.99)),
}
"""Which share of its rate is left, and of which rates."""


def of_a_task(name: str, tasks: int, k: int) -> Block:
    """One of as many tasks, whose baseline has exactly its rate. All figures are exact."""
    alpha, most = alpha_of_one(shipped_gate(), tasks), shipped_gate().regression.max_trials
    title = f"{name}: falls of one of {tasks} tasks x {k}, at most {most} trials, alpha {alpha:.2g}, exact"
    return Block(title, list(_figures(k, most, alpha)))


def _figures(k: int, most: int, alpha: float) -> Iterator[Figure]:
    n = RUNS * k
    for fall, (left, rates) in FALLS.items():
        for rate in rates:
            before = Before(round(rate * n), n)
            test = regression_test(before.passed, before.n, k=k, red_from=1, most=most, alpha=alpha)
            for text, value in (
                ("caught", operation(test, rate * left).fallen),
                ("bound", _bound(before, rate * left, k, most, alpha)),
            ):
                yield exactly(f"from {rate:g} to {fall}: {text}", value)


def _bound(before: Before, rate: float, k: int, most: int, alpha: float) -> float:
    """The power of the most powerful test at this level (Neyman and Pearson 1933), which looks once at all trials; a
    task that passes its first k is not caught.
    """
    ways = np.array([comb(most, failed) for failed in range(most + 1)], dtype=float)
    unchanged, fallen = ways * at_baseline(*before.unchanged(), most)[most], ways * at_rate(rate, most)[most]
    spent = power = 0.0
    for if_unchanged, if_fallen in zip(unchanged[::-1], fallen[::-1], strict=True):
        share = min(1.0, (alpha - spent) / if_unchanged) if if_unchanged else 1.0
        spent, power = spent + share * if_unchanged, power + share * if_fallen
        if share < 1:
            break
    return float(min(power, 1 - rate**k))
