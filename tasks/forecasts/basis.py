"""What is known of an agent before its gate is forecast."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from passgate.tasks.history.error_rates import ErrorRates
from passgate.tasks.model.baseline import Baseline, BaselineTask
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import BY_TRIALS, EvalTask
from passgate.tasks.stats.noise import Noise, noise_of
from passgate.tasks.stats.shrinkage import shrunk_rates

Source = Literal["history", "assumed", "file", "burn-in"]


@dataclass(frozen=True)
class Grounds:
    """What a forecast rests on, by `suite/task_id`."""

    baseline: Baseline
    rates: Mapping[str, float]
    """How many of its measured trials each task passes; of a task that goes by its scores, how many of its runs."""
    source: Source
    troubles: Mapping[str, ErrorRates] = field(default_factory=dict)
    noises: Mapping[Rule, Noise] = field(default_factory=dict)
    """Of latency and of cost."""

    def known(self, name: str) -> BaselineTask | None:
        """The baseline of a task; `None` where it is what runs of such an agent would give."""
        entry = self.baseline.of(name)
        return entry if entry.runs or self.source not in {"assumed", "file"} else None


def noises_of(baseline: Baseline) -> dict[Rule, Noise]:
    """The noise of latency and of cost in the runs of a baseline."""
    return {
        Rule.LATENCY: noise_of({name: task.wall_times for name, task in baseline.tasks.items()}),
        Rule.COST: noise_of({name: task.costs for name, task in baseline.tasks.items()}),
    }


def measured_rates(tasks: Iterable[EvalTask], baseline: Baseline) -> dict[str, float]:
    """The pass rate of each task by its trials at the baseline, drawn towards that of all (`shrunk_rates`); of tasks
    that go by their scores by its runs. A task of which nothing is known has the mean rate; empty where that is so of
    all.
    """
    by_kind: dict[bool, dict[str, tuple[int, int]]] = {True: {}, False: {}}
    for task in tasks:
        entry, by_trials = baseline.of(task.name), task.metric in BY_TRIALS
        counts = (entry.passed, entry.n) if by_trials else (entry.runs_green, len(entry.runs))
        by_kind[by_trials][task.name] = counts
    rates: dict[str, float] = {}
    for counts_of in by_kind.values():
        if any(n for _, n in counts_of.values()):
            rates |= zip(counts_of, shrunk_rates(list(counts_of.values())), strict=True)
    if not rates:
        return {}
    mean = fmean(rates.values())
    return {name: rates.get(name, mean) for counts_of in by_kind.values() for name in counts_of}
