"""How often an unchanged agent exceeds the limits of latency and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from passgate.tasks.forecasts.prospect import Prospect
from passgate.tasks.model.policy import GatePolicy, Limits, Rule
from passgate.tasks.stats.noise import Noise
from passgate.tasks.stats.percentiles import percentile
from passgate.tasks.stats.simulated_ratios import Floats, Pair, simulated_bounds


@dataclass(frozen=True)
class SimulatedLimits:
    """The bounds that simulated gates hold against their limits; `None` where nothing can be compared."""

    latency: Floats | None
    latency_p95_seconds: float
    """At the baseline."""
    cost: Floats | None

    def chances(self, gate: GatePolicy) -> dict[Rule, float]:
        """How often each of a gate's blocking limits is exceeded."""
        found = {Rule.LATENCY: self._latency(gate.limits), Rule.COST: self._cost(gate.limits)}
        return {rule: chance for rule, chance in found.items() if rule in gate.blocks_on and chance is not None}

    def _latency(self, limits: Limits) -> float | None:
        if self.latency is None:
            return None
        percent, milliseconds = limits.latency_p95_increase_pct, limits.latency_p95_increase_ms
        exceeded = np.zeros(len(self.latency), dtype=bool)
        if percent is not None:
            exceeded |= self.latency > 1 + percent / 100
        if milliseconds is not None:
            exceeded |= self.latency_p95_seconds * (self.latency - 1) > milliseconds / 1000
        return float(exceeded.mean())

    def _cost(self, limits: Limits) -> float | None:
        if self.cost is None or limits.cost_increase_pct is None:
            return None
        return float((self.cost > 1 + limits.cost_increase_pct / 100).mean())


NO_LIMITS = SimulatedLimits(None, 0.0, None)
"""Nothing is compared."""
_NO_NOISE = Noise({}, 0.0)


def simulate_limits(
    prospects: Sequence[Prospect], noises: Mapping[Rule, Noise], runs: int, gates: int, seed: int
) -> SimulatedLimits:
    """Simulate so many gates, with the noise that there was in the `runs` of the baseline."""
    known = [(prospect.name, prospect.failed.k, prospect.known) for prospect in prospects if prospect.known]
    times = {name: (before.wall_times, k) for name, k, before in known if before.wall_times}
    costs = {name: (before.costs, k) for name, k, before in known if before.costs}
    latency, cost = (noises.get(rule, _NO_NOISE) for rule in (Rule.LATENCY, Rule.COST))
    return SimulatedLimits(
        latency=simulated_bounds(_pairs(times, latency), gates, seed, drift=latency.drift, runs=runs),
        latency_p95_seconds=percentile([value for values, _ in times.values() for value in values], 95) or 0.0,
        cost=simulated_bounds(_pairs(costs, cost), gates, seed + 1, drift=cost.drift, runs=runs),
    )


def _pairs(figures: Mapping[str, tuple[Sequence[float], int]], noise: Noise) -> list[Pair]:
    return [Pair(len(before), k, noise.spreads.get(name)) for name, (before, k) in figures.items()]
