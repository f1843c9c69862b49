"""Section g: how often the intervals hold the true value. All exact: sums over the binomial distribution."""

from collections.abc import Callable
from math import comb

from bench.gate_trust.figures import Block, percent
from passgate.tasks.stats.estimators import suite_interval, wilson_interval

NS = (3, 5, 10, 20, 60)
RATES = (0.5, 0.7, 0.9, 0.95, 0.99, 0.999)
SUITES = (8, 20, 50)
_GRID = 2000


def of_a_task(name: str) -> Block:
    """Wilson's interval of a pass rate: at its edges, and over all rates."""
    head = f"{'n':>3}  {'of n/n':<20} {'n/n below it':>13}  {'mean':>7} {'worst':>7}  " + "  ".join(
        f"{f'at {rate}':>8}" for rate in RATES
    )
    lines = [head]
    for n in NS:
        low, high = wilson_interval(n, n)
        whole = [coverage(n, step / _GRID, wilson_interval) for step in range(_GRID // 2, _GRID)]
        at = "  ".join(f"{percent(coverage(n, rate, wilson_interval)):>8}" for rate in RATES)
        interval = f"{percent(low)} to {percent(high)}"
        mean, worst = percent(sum(whole) / len(whole)), percent(min(whole))
        lines.append(f"{n:>3}  {interval:<20} {percent(low**n):>13}  {mean:>7} {worst:>7}  {at}")
    lines += [
        "n/n below it: how often a task at the interval's lower end passes all n; 0/n mirrors it",
        "mean, worst: coverage over the rates from 0.5 to 1; at ...: coverage at one rate; exact",
    ]
    narrow = [n for n in NS for low, high in (wilson_interval(n, 0), wilson_interval(n, n)) if high - low < 0.01]
    missed = [f"{name}: the interval at 0/{n} or {n}/{n} has no width" for n in narrow]
    return Block(f"{name}: 95 % interval of a pass rate", lines=lines, missed=missed)


def of_a_suite(name: str) -> Block:
    """The interval of a suite's value: the share of its tasks that pass, each with the same chance p^k."""
    k = 3
    lines = ["tasks  " + "  ".join(f"{f'at {rate}':>8}" for rate in RATES)]
    for tasks in SUITES:
        covered = [coverage(tasks, rate**k, lambda n, c: suite_interval(c / n, n)) for rate in RATES]
        lines.append(f"{tasks:>5}  " + "  ".join(f"{percent(one):>8}" for one in covered))
    lines.append(f"coverage of pass^{k} by the true pass rate of a trial; exact")
    return Block(f"{name}: 95 % interval of a suite's value, k {k}", lines=lines)


def coverage(n: int, rate: float, interval: Callable[[int, int], tuple[float, float]]) -> float:
    """The chance that the interval from n draws holds the rate."""
    held = 0.0
    for c in range(n + 1):
        low, high = interval(n, c)
        if low <= rate <= high:
            held += comb(n, c) * rate**c * (1 - rate) ** (n - c)
    return held
