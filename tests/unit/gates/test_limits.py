"""Latency and cost against the baseline."""

from collections.abc import Sequence
from typing import Any

import pytest

from passgate.tasks.gates.limits import COST, LATENCY, compare_with_baseline, limit_reasons
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import Limits, Rule
from passgate.tasks.model.trial import Trial, TrialMetrics
from passgate.tasks.model.verdict import Comparison
from tests.builders import a_baseline, a_baseline_task, a_task, a_trial, in_two_runs, measured

TASKS = [a_task(task_id=f"t{number}") for number in range(8)]


def now(values: Sequence[Sequence[float]], metric: str = "wall_time_seconds") -> Measurement:
    """Each task with one trial per value of the metric."""

    def trials(task: Any, figures: Sequence[float]) -> list[Trial]:
        return [
            a_trial(task, number, metrics=TrialMetrics(**{metric: figure})) for number, figure in enumerate(figures)
        ]

    return measured(*((task, trials(task, figures)) for task, figures in zip(TASKS, values, strict=False)))


def before(values: Sequence[Sequence[float]], kind: str = "wall_times") -> Baseline:
    entries = {
        f"golden/{task.task_id}": a_baseline_task(**{kind: in_two_runs(*figures) if figures else {}})
        for task, figures in zip(TASKS, values, strict=False)
    }
    return Baseline(branch="main", tasks=entries)


def steady(level: float, tasks: int = 8) -> list[list[float]]:
    return [[level, level, level]] * tasks


def latency(limits: Limits, current: Sequence[Sequence[float]], earlier: Sequence[Sequence[float]]) -> list[str]:
    comparisons = compare_with_baseline(limits, now(current), before(earlier))
    return [reason.message for reason in limit_reasons(limits, comparisons)]


def cost(limits: Limits, current: Sequence[Sequence[float]], earlier: Sequence[Sequence[float]]) -> list[str]:
    comparisons = compare_with_baseline(limits, now(current, "cost"), before(earlier, "costs"))
    return [reason.message for reason in limit_reasons(limits, comparisons)]


PERCENT = Limits(latency_p95_increase_pct=15)
MILLISECONDS = Limits(latency_p95_increase_ms=1500)
COSTS = Limits(cost_increase_pct=10)


@pytest.mark.parametrize(("seconds", "exceeded"), [(8.0, 0), (10.0, 0), (11.5, 0), (11.51, 1), (20.0, 1)])
def test_a_limit_in_percent(seconds: float, exceeded: int) -> None:
    assert len(latency(PERCENT, steady(seconds), steady(10.0))) == exceeded


@pytest.mark.parametrize(("seconds", "exceeded"), [(8.0, 0), (10.0, 0), (11.5, 0), (11.51, 1), (20.0, 1)])
def test_a_limit_in_milliseconds(seconds: float, exceeded: int) -> None:
    assert len(latency(MILLISECONDS, steady(seconds), steady(10.0))) == exceeded


@pytest.mark.parametrize(("dollars", "exceeded"), [(0.5, 0), (1.0, 0), (1.1, 0), (1.11, 1)])
def test_a_limit_on_cost(dollars: float, exceeded: int) -> None:
    assert len(cost(COSTS, steady(dollars), steady(1.0))) == exceeded


def test_the_message_says_from_where_to_where() -> None:
    assert latency(PERCENT, steady(12.0), steady(10.0)) == [
        "latency P95 went from 10 to 12 s; compared task by task it is at least 1.200 times the baseline (limit +15 %)"
    ]
    assert cost(COSTS, steady(2.0), steady(1.0)) == [
        "cost went from 8 to 16 $; compared task by task it is at least 2.000 times the baseline (limit +10 %)"
    ]


def test_either_limit_is_a_limit() -> None:
    both = Limits(latency_p95_increase_pct=50, latency_p95_increase_ms=100)
    (message,) = latency(both, steady(10.2), steady(10.0))
    assert message.endswith("(limit +50 % and +100 ms)")


def test_one_slow_task_exceeds_the_plain_figure_and_proves_nothing() -> None:
    slow = [[40.0, 40.0, 40.0], *steady(10.0, 7)]
    assert latency(PERCENT, slow, steady(10.0)) == []
    assert latency(MILLISECONDS, slow, steady(10.0)) == []
    (comparison,) = compare_with_baseline(PERCENT, now(slow), before(steady(10.0)))
    assert (comparison.current, comparison.baseline) == (40.0, 10.0)
    assert comparison.ratio_lower_bound is not None
    assert comparison.ratio_lower_bound < 1.15


def test_many_slower_tasks_do_not_hide_behind_the_slowest() -> None:
    """The P95 is that of the slowest task, which has not changed."""
    slower = [[100.0] * 3, *[[2.0] * 3] * 7]
    assert len(latency(PERCENT, slower, [[100.0] * 3, *[[1.0] * 3] * 7])) == 1


def test_noise_is_no_increase() -> None:
    noisy = [[8, 10, 13], [12, 9, 9.5], [9, 14, 8], [10, 10.5, 12], [7, 15, 9], [11, 9, 10], [9, 9, 12], [13, 8, 10]]
    assert latency(Limits(latency_p95_increase_pct=0), noisy, noisy[::-1]) == []


def test_fewer_than_eight_tasks_are_not_judged() -> None:
    assert latency(PERCENT, steady(100.0, 7), steady(1.0, 7)) == []
    (comparison,) = compare_with_baseline(PERCENT, now(steady(100.0, 7)), before(steady(1.0, 7)))
    assert (comparison.pairs, comparison.ratio, comparison.ratio_lower_bound) == (7, None, None)


def test_a_single_run_at_the_baseline_is_no_measure_of_runs() -> None:
    one = a_baseline(*TASKS, wall_times={"20260101-ab": (10.0, 10.0, 10.0)})
    (comparison,) = compare_with_baseline(PERCENT, now(steady(100.0)), one)
    assert (comparison.pairs, comparison.runs, comparison.ratio_lower_bound) == (8, 1, None)
    assert list(limit_reasons(PERCENT, (comparison,))) == []


def test_runs_that_differ_anyway_prove_less() -> None:
    """All tasks take 30 % more now, and took 20 % more in one run of the baseline than in another."""
    two = a_baseline(*TASKS, wall_times={"20260102-cd": (12.0, 12.0, 12.0), "20260101-ab": (10.0, 10.0, 10.0)})
    (comparison,) = compare_with_baseline(PERCENT, now(steady(14.24)), two)
    assert comparison.ratio == pytest.approx(1.3, rel=0.001)
    assert comparison.drift == pytest.approx(0.1289, rel=0.001)
    assert comparison.ratio_lower_bound is not None
    assert comparison.ratio_lower_bound < 1
    assert list(limit_reasons(PERCENT, (comparison,))) == []


def test_only_tasks_with_figures_on_both_sides_are_pairs() -> None:
    now_without_one, before_without_another = [[], *steady(10.0, 7)], [*steady(10.0, 7), []]
    (comparison,) = compare_with_baseline(PERCENT, now(now_without_one), before(before_without_another))
    assert comparison.pairs == 6


def test_figures_of_0_make_no_pairs() -> None:
    free = [[0.0] * 3, *steady(1.0, 7)]
    for current, earlier in ((free, steady(1.0)), (steady(1.0), free)):
        (comparison,) = compare_with_baseline(COSTS, now(current, "cost"), before(earlier, "costs"))
        assert (comparison.pairs, comparison.ratio) == (7, None)


def test_without_a_baseline_nothing_is_compared() -> None:
    every = Limits(latency_p95_increase_pct=1, latency_p95_increase_ms=1, cost_increase_pct=1)
    assert compare_with_baseline(every, now(steady(1.0)), Baseline(branch="main")) == ()


def test_without_limits_nothing_is_compared() -> None:
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
    reasons = limit_reasons(limits, (compared(LATENCY), compared(COST)))
    assert [reason.rule for reason in reasons] == [Rule.LATENCY, Rule.COST]
