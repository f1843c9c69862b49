"""Latency and cost against the baseline."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from passgate.tasks.gates.limits import COST, LATENCY, compare_with_baseline, limit_reasons
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import Limits, Rule
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import Trial, TrialMetrics
from passgate.tasks.model.verdict import Comparison, Reason
from tests.builders import a_baseline, a_baseline_task, a_task, a_trial, in_two_runs, measured

Trials = list[list[float]]
TASKS = [a_task(task_id=f"t{number}") for number in range(8)]


def now(values: Sequence[Sequence[float]], metric: str = "wall_time_seconds") -> Measurement:
    """Each task with one trial per value of the metric."""
    groups: list[tuple[EvalTask, list[Trial]]] = [(task, []) for task, _ in zip(TASKS, values, strict=False)]
    for (task, trials), figures in zip(groups, values, strict=True):
        trials += [a_trial(task, n, metrics=TrialMetrics(**{metric: figure})) for n, figure in enumerate(figures)]
    return measured(*groups)


def before(values: Sequence[Sequence[float]], kind: str = "wall_times") -> Baseline:
    entries = {
        f"golden/{task.task_id}": a_baseline_task(**{kind: in_two_runs(*figures) if figures else {}})
        for task, figures in zip(TASKS, values, strict=False)
    }
    return Baseline(branch="main", tasks=entries)


def steady(level: float, tasks: int = 8) -> list[list[float]]:
    return [[level, level, level]] * tasks


def exceeded(
    limits: Limits, current: Trials, earlier: Trials, metric: str = "wall_time_seconds", kind: str = "wall_times"
) -> list[str]:
    measurement = now(current, metric)
    comparisons = compare_with_baseline(limits, measurement, before(earlier, kind))
    return [reason.message for reason in limit_reasons(limits, comparisons, measurement)]


latency, cost = exceeded, partial(exceeded, metric="cost", kind="costs")


PERCENT = Limits(latency_p95_increase_pct=15)
MILLISECONDS = Limits(latency_p95_increase_ms=1500)
COSTS = Limits(cost_increase_pct=10)


@pytest.mark.parametrize("limits", [PERCENT, MILLISECONDS], ids=["percent", "milliseconds"])
@pytest.mark.parametrize(("seconds", "count"), [(8.0, 0), (10.0, 0), (11.5, 0), (11.51, 1), (20.0, 1)])
def test_a_limit_in_percent_or_milliseconds(limits: Limits, seconds: float, count: int) -> None:
    assert len(latency(limits, steady(seconds), steady(10.0))) == count


@pytest.mark.parametrize(("dollars", "count"), [(0.5, 0), (1.0, 0), (1.1, 0), (1.11, 1)])
def test_a_limit_on_cost(dollars: float, count: int) -> None:
    assert len(cost(COSTS, steady(dollars), steady(1.0))) == count


def test_the_message_says_from_where_to_where_and_which_limits() -> None:
    by_task = "; compared task by task it is at least {0} times the baseline"
    plain = "; the figure itself is at least {0} times that of the baseline's runs"
    (message,) = latency(PERCENT, steady(12.0), steady(10.0))
    assert message == f"latency P95 went from 10 to 12 s{by_task}{plain} (limit +15 %)".format("1.200")
    (message,) = cost(COSTS, steady(2.0), steady(1.0))
    assert message == f"cost went from 8 to 16 ${by_task}{plain} (limit +10 %)".format("2.000")
    both = Limits(latency_p95_increase_pct=50, latency_p95_increase_ms=100, task_increase_pct=None)
    (message,) = latency(both, steady(10.2), steady(10.0))
    assert message.endswith("(limit +50 % and +100 ms)")


def varied(seed: int, *, slower: float = 1.0, tasks: int = 8, level: float = 10.0, trials: int = 3) -> Trials:
    """Trials that differ by a tenth; those of the first task take `slower` times as much."""
    noise = np.random.default_rng(seed).lognormal(0, 0.1, size=(tasks, trials))
    noise[0] *= slower
    return [list(row) for row in level * noise]


def some_runs(kind: str = "wall_times", level: float = 10.0) -> Baseline:
    """Eight runs."""
    runs = [varied(seed, level=level) for seed in range(8)]
    entries = {
        f"golden/{task.task_id}": a_baseline_task(**{kind: {f"r{n}": tuple(run[t]) for n, run in enumerate(runs)}})
        for t, task in enumerate(TASKS)
    }
    return Baseline(branch="main", tasks=entries)


class TestOneTask:
    def reasons(self, limits: Limits, slower: float, level: float = 10.0, exempt: Sequence[str] = ()) -> list[Reason]:
        measurement = now(varied(99, slower=slower, level=level))
        comparisons = compare_with_baseline(limits, measurement, some_runs(level=level))
        return [
            one for one in limit_reasons(limits, comparisons, measurement, exempt) if "limit of a task" in one.message
        ]

    def test_that_is_ten_times_slower_is_named_with_its_file_and_does_not_block_where_it_is_exempt(self) -> None:
        (reason,) = self.reasons(PERCENT, 10)
        assert reason.message.startswith("golden/t0: latency went from ")
        assert reason.message.endswith("times the baseline (limit of a task +100 %)")
        assert (reason.rule, reason.blocking, reason.file, reason.line) == (Rule.LATENCY, True, TASKS[0].file, 1)
        (reason,) = self.reasons(PERCENT, 10, exempt=["golden/t0"])
        assert not reason.blocking

    def test_that_is_a_little_slower_is_below_the_limit_of_a_task_which_it_may_have_itself(self) -> None:
        assert self.reasons(PERCENT, 1.5) == []
        assert len(self.reasons(Limits(latency_p95_increase_pct=15, task_increase_pct=40), 3)) == 1
        assert self.reasons(Limits(latency_p95_increase_pct=15, task_increase_pct=400), 3) == []
        assert self.reasons(Limits(latency_p95_increase_pct=15, task_increase_pct=None), 10) == []

    def test_a_reason_never_says_that_a_task_rose_by_more_than_its_figures_did(self) -> None:
        trials = varied(99)
        # Beside tasks that are faster now, its trials look slower than they are.
        trials[1:] = [[value / 2 for value in row] for row in trials[1:]]
        trials[0] = [value * 2.2 for value in trials[0]]
        (comparison,) = compare_with_baseline(PERCENT, now(trials), some_runs())
        for task in comparison.slower_tasks:
            assert task.lower_bound <= task.current / task.baseline
        assert comparison.ratio_lower_bound <= comparison.ratio
        assert comparison.plain_lower_bound <= comparison.current / comparison.baseline

    def test_of_which_the_increase_is_below_the_floor_is_none(self) -> None:
        assert self.reasons(PERCENT, 10, level=0.05) == []
        assert len(self.reasons(PERCENT.model_copy(update={"latency_floor_ms": 100}), 10, level=0.05)) == 1

    def test_that_hangs_in_one_trial_is_no_slower_task(self) -> None:
        trials = varied(99)
        trials[0][1] = 1000.0
        measurement = now(trials)
        comparisons = compare_with_baseline(PERCENT, measurement, some_runs())
        assert comparisons[0].slower_tasks == ()


def test_a_few_dear_tasks_are_seen_in_the_total() -> None:
    """Each less than twice as dear, which no limit of a task and no geometric mean of all shows."""
    dear = [[value * 1.9 for value in task] if place < 3 else task for place, task in enumerate(varied(99))]
    dear[0] = [value * 50 for value in dear[0]]
    limits = COSTS.model_copy(update={"task_increase_pct": None})
    measurement = now(dear, "cost")
    (comparison,) = compare_with_baseline(limits, measurement, some_runs("costs"))
    assert comparison.plain_lower_bound is not None
    assert comparison.plain_lower_bound > 4
    (reason,) = limit_reasons(limits, (comparison,), measurement)
    assert "the figure itself is at least" in reason.message


def test_an_increase_below_a_floor_blocks_nothing() -> None:
    assert latency(PERCENT, steady(0.1 * 4 / 3), steady(0.1)) == []
    assert len(latency(PERCENT, steady(4.0 * 4 / 3), steady(4.0))) == 1
    assert len(latency(Limits(latency_p95_increase_ms=100), steady(0.3), steady(0.1))) == 1
    assert cost(COSTS, steady(0.0015), steady(0.001)) == []
    assert len(cost(Limits(cost_increase_pct=10, cost_floor_usd=0), steady(0.0015), steady(0.001))) == 1


def test_many_slower_tasks_do_not_hide_behind_the_slowest_and_noise_is_no_increase() -> None:
    """The P95 is that of the slowest task, which has not changed."""
    slower = [[100.0] * 3, *[[2.0] * 3] * 7]
    assert len(latency(PERCENT, slower, [[100.0] * 3, *[[1.0] * 3] * 7])) == 1
    noisy = [[8, 10, 13], [12, 9, 9.5], [9, 14, 8], [10, 10.5, 12], [7, 15, 9], [11, 9, 10], [9, 9, 12], [13, 8, 10]]
    assert latency(Limits(latency_p95_increase_pct=0), noisy, noisy[::-1]) == []


def test_fewer_than_eight_tasks_or_a_single_run_are_not_judged() -> None:
    assert latency(PERCENT, steady(100.0, 7), steady(1.0, 7)) == []
    (comparison,) = compare_with_baseline(PERCENT, now(steady(100.0, 7)), before(steady(1.0, 7)))
    assert (comparison.pairs, comparison.ratio, comparison.ratio_lower_bound) == (7, None, None)
    one = a_baseline(*TASKS, wall_times={"20260101-ab": (10.0, 10.0, 10.0)})
    (comparison,) = compare_with_baseline(PERCENT, now(steady(100.0)), one)
    assert (comparison.pairs, comparison.runs, comparison.ratio_lower_bound) == (8, 1, None)
    assert list(limit_reasons(PERCENT, (comparison,), now([]))) == []


def test_runs_that_differ_anyway_prove_less() -> None:
    """All tasks take 30 % more now, and took 20 % more in one run of the baseline than in another."""
    two = a_baseline(*TASKS, wall_times={"20260102-cd": (12.0, 12.0, 12.0), "20260101-ab": (10.0, 10.0, 10.0)})
    (comparison,) = compare_with_baseline(PERCENT, now(steady(14.24)), two)
    assert comparison.ratio == pytest.approx(1.3, rel=0.001)
    assert comparison.drift == pytest.approx(0.1289, rel=0.001)
    assert comparison.ratio_lower_bound is not None
    assert comparison.ratio_lower_bound <= 1
    assert list(limit_reasons(PERCENT, (comparison,), now([]))) == []


def test_only_tasks_with_figures_above_0_on_both_sides_are_pairs() -> None:
    now_without_one, before_without_another = [[], *steady(10.0, 7)], [*steady(10.0, 7), []]
    (comparison,) = compare_with_baseline(PERCENT, now(now_without_one), before(before_without_another))
    assert comparison.pairs == 6
    free = [[0.0] * 3, *steady(1.0, 7)]
    for current, earlier in ((free, steady(1.0)), (steady(1.0), free)):
        (comparison,) = compare_with_baseline(COSTS, now(current, "cost"), before(earlier, "costs"))
        assert (comparison.pairs, comparison.ratio) == (7, None)


def test_without_limits_or_a_baseline_nothing_is_compared() -> None:
    every = Limits(latency_p95_increase_pct=1, latency_p95_increase_ms=1, cost_increase_pct=1)
    assert compare_with_baseline(every, now(steady(1.0)), Baseline(branch="main")) == ()
    assert compare_with_baseline(Limits(), now(steady(1.0)), before(steady(1.0))) == ()


def test_costs_are_compared_per_trial() -> None:
    """Another number of trials is no other price."""
    more_trials = [[1.0] * 9] * 8
    assert cost(COSTS, more_trials, steady(1.0)) == []
    assert cost(COSTS, steady(1.0), more_trials) == []


def test_each_comparison_has_its_rule() -> None:
    def compared(name: str) -> Comparison:
        return Comparison(name=name, unit="", baseline=1, current=9, pairs=5, ratio=9, ratio_lower_bound=8, limit="")

    limits = Limits(latency_p95_increase_pct=15, cost_increase_pct=10)
    reasons = limit_reasons(limits, (compared(LATENCY), compared(COST)), now([]))
    assert [reason.rule for reason in reasons] == [Rule.LATENCY, Rule.COST]
