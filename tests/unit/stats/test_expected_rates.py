"""What pass rate an unchanged task is expected to have."""

import random

import pytest

from passgate.tasks.stats.expected_rates import Counts, Drift, drift_between_runs, newest_if_worse, other_tasks
from passgate.tasks.stats.regression import Before


def runs(*passed: int, k: int = 3) -> list[Counts]:
    return [Counts(one, k) for one in passed]


@pytest.mark.parametrize(
    ("newest", "older", "dropped"),
    [((0, 0, 0), 3, True), ((3, 2, 3), 3, False), ((2, 1, 2), 2, False), ((1, 0, 1), 3, True), ((0, 0, 0), 0, False)],
)
def test_newest_runs_that_are_worse_than_chance_would_make_them(
    newest: tuple[int, int, int], older: int, dropped: bool
) -> None:
    assert newest_if_worse(runs(*newest, *[older] * 17)) == (Counts(sum(newest), 9) if dropped else None)
    assert newest_if_worse(runs(*newest)) is None
    assert newest_if_worse([]) is None


def test_like_tasks_tell_as_much_as_a_task_itself_at_the_most_and_others_less() -> None:
    others = other_tasks([Counts(57, 60)] * 20)
    passed, n = others.pool(Counts(57, 60))
    assert 60 < n <= 120
    assert passed / n == pytest.approx(0.95, abs=0.01)
    others = other_tasks([Counts(passed, 60) for passed in range(3, 60, 3)])
    passed, n = others.pool(Counts(30, 60))
    assert n <= 75
    assert passed / n == pytest.approx(0.5, abs=0.03)
    assert other_tasks([Counts(57, 60)] * 20).pool(Counts(9, 9)) == Counts(9, 9)


@pytest.mark.parametrize("counts", [[], [Counts(57, 60)] * 4, [Counts(9, 9)] * 20])
def test_few_tasks_or_thin_baselines_tell_nothing(counts: list[Counts]) -> None:
    assert other_tasks(counts).pool(Counts(50, 60)) == Counts(50, 60)


def history(drift: float, seed: int, rate: float = 0.9) -> list[dict[str, Counts]]:
    """Twenty tasks of three trials in twenty runs, whose rates a run shifts."""
    rng = random.Random(seed)
    rates = [min(max(rng.gauss(rate, drift), 0), 1) for _ in range(20)]
    return [
        {f"r{run}": Counts(sum(rng.random() < one for _ in range(3)), 3) for run, one in enumerate(rates)}
        for _ in range(20)
    ]


def test_runs_that_differ_drift_and_noise_or_nothing_does_not() -> None:
    found = [drift_between_runs(history(0.08, seed)).deviation for seed in range(20)]
    assert min(found) >= 0.05
    assert max(found) <= 0.15
    assert [drift_between_runs(history(0.0, seed)).deviation for seed in range(40)].count(0.0) >= 36
    steady = Counts(3, 3)
    assert [drift_between_runs(one) for one in ([], [{"r": steady}], [{"r": steady, "s": steady}])] == [Drift()] * 3


@pytest.mark.parametrize("red", [("r7",), ("r1", "r7"), ("r1", "r12", "r7")], ids=len)
@pytest.mark.parametrize(("rate", "drift"), [(0.95, 0.0), (1.0, 0.0), (0.9, 0.05)])
def test_runs_far_from_all_others_are_named_and_are_no_drift(rate: float, drift: float, red: tuple[str, ...]) -> None:
    for seed in range(20):
        tables = history(drift, seed, rate)
        without = drift_between_runs([{run: one[run] for run in one if run not in red} for one in tables])
        outage = drift_between_runs([{**one, **dict.fromkeys(red, Counts(0, 3))} for one in tables])
        assert outage == Drift(without.deviation, red)
        assert not without.outliers
    steady = [{f"r{run}": Counts(3, 3) for run in range(20)} for _ in range(20)]
    assert not drift_between_runs([{**steady[0], "r7": Counts(2, 3)}, *steady[1:]]).outliers


@pytest.mark.parametrize(("runs", "red", "outliers"), [(12, 2, 2), (12, 3, 0), (5, 1, 0)])
def test_up_to_a_sixth_of_the_runs_is_left_out(runs: int, red: int, outliers: int) -> None:
    table = {f"r{run:02}": Counts(0 if run < red else 5, 5) for run in range(runs)}
    assert len(drift_between_runs([table] * 3).outliers) == outliers


def test_drift_widens_what_an_unchanged_task_may_do() -> None:
    good, bad = Before(57, 60).unchanged()
    wide_good, wide_bad = Before(57, 60, 0.05).unchanged()
    assert wide_good / (wide_good + wide_bad) == pytest.approx(good / (good + bad))
    mean, variance = 57.5 / 61, 0.05**2 + (57.5 * 3.5) / (61**2 * 62)
    assert mean * (1 - mean) / (wide_good + wide_bad + 1) == pytest.approx(variance)
