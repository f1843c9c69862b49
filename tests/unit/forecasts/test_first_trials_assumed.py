"""The baseline that runs of an agent would make."""

import random
from collections import Counter

import pytest

from passgate.tasks.forecasts.first_trials import MOST_TRIALS, TrialRule, assumed_baseline
from passgate.tasks.history.baseline import state_of
from passgate.tasks.model.baseline import BaselineState
from passgate.tasks.model.policy import Admission
from passgate.tasks.model.task import Metric, SequentialTest

AND, OR = TrialRule(3, Metric.PASS_HAT_K), TrialRule(3, Metric.PASS_AT_K)
ADMISSION = Admission(passes=9, of=10)


def share(found, holds) -> float:
    return sum(chance for entry, chance in found if holds(entry))


@pytest.mark.parametrize("rule", [AND, OR], ids=["and", "or"])
@pytest.mark.parametrize("rate", [0.98, 0.8, 0.4])
def test_is_what_many_histories_are(rule: TrialRule, rate: float) -> None:
    """Histories drawn trial by trial, pooled as the history is, have the same states, passes and admissions."""
    seed, runs, n = random.Random(1), 7, 4000
    states: Counter[BaselineState] = Counter()
    passed, admitted = 0, 0
    for _ in range(n):
        newest_first = [[seed.random() < rate for _ in range(3)] for _ in range(runs)]
        states[state_of([rule.is_green(run.count(False)) is True for run in newest_first])] += 1
        trials = [trial for run in newest_first for trial in run]
        passed += sum(trials)
        admitted += sum(trials[:10]) >= 9
    found = assumed_baseline(rule, rate, runs, ADMISSION)
    for state in (BaselineState.GREEN, BaselineState.RED, BaselineState.UNRELIABLE):
        assert share(found, lambda entry, state=state: entry.state is state) == pytest.approx(
            states[state] / n, abs=0.03
        )
    assert sum(entry.passed * chance for entry, chance in found) == pytest.approx(passed / n, rel=0.01)
    assert share(found, lambda entry: sum(entry.newest[:10]) >= 9) == pytest.approx(admitted / n, abs=0.03)


def test_the_chances_sum_to_1_and_every_run_counts_up_to_a_bound() -> None:
    found = assumed_baseline(AND, 0.9, 20, None)
    assert sum(chance for _, chance in found) == pytest.approx(1)
    assert {entry.n for entry, _ in found} == {60}
    found = assumed_baseline(AND, 0.999, 1000, None)
    assert {entry.n for entry, _ in found} == {MOST_TRIALS}


def test_an_agent_that_never_fails_is_green_and_one_that_never_passes_red() -> None:
    ((entry, chance),) = assumed_baseline(AND, 1.0, 20, Admission())
    assert (entry.state, entry.passed, entry.n, chance) == (BaselineState.GREEN, 60, 60, 1.0)
    assert entry.newest == (True,) * 20
    ((entry, _),) = assumed_baseline(OR, 0.0, 2, None)
    assert (entry.state, entry.passed) == (BaselineState.RED, 0)


def test_the_newest_runs_all_red_are_red_whatever_was_before() -> None:
    found = assumed_baseline(AND, 0.5, 8, None)
    by_share = sum(chance for entry, chance in found if entry.state is BaselineState.RED)
    all_red_lately = (1 - 0.5**3) ** 3
    assert by_share > all_red_lately


def test_too_few_trials_admit_nobody() -> None:
    ((entry, _),) = assumed_baseline(AND, 1.0, 3, Admission(passes=9, of=10))
    assert len(entry.newest) == 9


def test_scores_and_sequential_tests_are_as_green_as_they_pass() -> None:
    found = assumed_baseline(TrialRule(5, Metric.MEAN), 0.9, 1, None)
    assert share(found, lambda entry: entry.state is BaselineState.GREEN) == pytest.approx(0.9, abs=1e-5)
    rule = TrialRule(20, Metric.PASS_HAT_K, SequentialTest(accept=0.95, reject=0.7))
    found = assumed_baseline(rule, 0.95, 1, None)
    assert share(found, lambda entry: entry.state is BaselineState.GREEN) == pytest.approx(
        rule.green_chance(0.95), abs=1e-5
    )
