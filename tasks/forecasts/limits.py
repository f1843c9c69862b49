"""How often an unchanged agent exceeds the limits of latency and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from passgate.tasks.forecasts.assumptions import TaskAssumptions
from passgate.tasks.gates.limits import exceeds
from passgate.tasks.model.baseline import pooled
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.stats.estimators import percentile
from passgate.tasks.stats.ratios import Floats, Noise, Pair, simulated_bounds

_NO_NOISE = Noise({}, 0.0, 0)


@dataclass(frozen=True)
class SimulatedLimits:
    """The bounds that simulated gates hold against their limits; `None` if nothing can be compared."""

    latency: Floats | None
    latency_p95_seconds: float  # at the baseline
    cost: Floats | None

    def chances(self, gate: GatePolicy) -> dict[Rule, float]:
        """How often each of a gate's blocking limits is exceeded."""
        found = {}
        if self.latency is not None:
            found[Rule.LATENCY] = exceeds(gate.limits, Rule.LATENCY, self.latency, self.latency_p95_seconds)
        if self.cost is not None and gate.limits.cost_increase_pct is not None:
            found[Rule.COST] = exceeds(gate.limits, Rule.COST, self.cost, 0.0)
        return {rule: float(exceeded.mean()) for rule, exceeded in found.items() if rule in gate.blocks_on}


NO_LIMITS = SimulatedLimits(None, 0.0, None)


def simulate_limits(
    tasks: Sequence[TaskAssumptions], noises: Mapping[Rule, Noise], gates: int, seed: int
) -> SimulatedLimits:
    """Simulate as many gates, with the noise that there was at the baseline."""
    known = [(task.name, task.failed.k, task.known) for task in tasks if task.known]
    times = {name: (pooled(before.wall_times), k) for name, k, before in known}
    costs = {name: (pooled(before.costs), k) for name, k, before in known}
    return SimulatedLimits(
        latency=_bounds(times, noises.get(Rule.LATENCY, _NO_NOISE), gates, seed),
        latency_p95_seconds=percentile([value for before, _ in times.values() for value in before], 95) or 0.0,
        # Another seed: with the same one, latency and cost would rise and fall together.
        cost=_bounds(costs, noises.get(Rule.COST, _NO_NOISE), gates, seed + 1),
    )


def _bounds(figures: Mapping[str, tuple[Sequence[float], int]], noise: Noise, gates: int, seed: int) -> Floats | None:
    """`figures` are those of each task at the baseline, and how many a run will have."""
    counted = {name: (sum(value > 0 for value in before), k) for name, (before, k) in figures.items()}
    pairs = [Pair(before, k, noise.spreads.get(name)) for name, (before, k) in counted.items() if before]
    return simulated_bounds(pairs, gates, seed, drift=noise.drift, runs=noise.runs)
