"""What the first k trials of a task come to, and the baseline that follows from them."""

import random
from collections import Counter

import pytest

from passgate.tasks.forecasts.first_trials import (
    MOST_TRIALS,
    FirstTrials,
    TrialRule,
    TrialShares,
    assumed_baseline,
    expected_trials,
    first_trials,
)
from passgate.tasks.history.baseline import state_of
from passgate.tasks.model.baseline import BaselineState
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.policy import Admission
from passgate.tasks.model.task import Metric
from passgate.tasks.stats.decision import decide_by
from tests.builders import a_task, trials_of

AND, OR = TrialRule(3, Metric.PASS_HAT_K), TrialRule(3, Metric.PASS_AT_K)


def played(rule: TrialRule, trial: TrialShares, seed: random.Random) -> str:
    """One task of which every trial is drawn, decided as gates do it."""
    shares = {"p": trial.passed, "e": trial.errors, "v": trial.violated}
    shares["f"] = 1 - sum(shares.values())
    letters = "".join(seed.choices(list(shares), list(shares.values()), k=rule.k))
    if "v" in letters:
        return "vetoed"
    task = a_task(k=rule.k, metric=rule.metric)
    state = decide_by(task, trials_of(task, letters))
    return {TaskState.PASSED: "passed", TaskState.FAILED: "failed", TaskState.UNDECIDED: "undecided"}[state]


@pytest.mark.parametrize("rule", [AND, OR], ids=["and", "or"])
@pytest.mark.parametrize("trial", [TrialShares(0.8), TrialShares(0.6, 0.1, 0.2), TrialShares(0.3, 0.0, 0.4)])
def test_is_how_gates_decide(rule: TrialRule, trial: TrialShares) -> None:
    seed, n = random.Random(2), 4000
    counts = Counter(played(rule, trial, seed) for _ in range(n))
    found = first_trials(rule, trial)
    assert sum(found) == pytest.approx(1)
    for name, chance in found._asdict().items():
        assert chance == pytest.approx(counts[name] / n, abs=0.03), name


def test_the_seeds_rule_and_that_of_scores() -> None:
    assert first_trials(AND, TrialShares(0.99)) == (pytest.approx(0.99**3), pytest.approx(1 - 0.99**3), 0, 0)
    assert first_trials(OR, TrialShares(0.4)).failed == pytest.approx(0.6**3)
    found = first_trials(TrialRule(5, Metric.MEAN), TrialShares(0.9 * 0.98, 0.0, 0.02))
    assert found.passed == pytest.approx(0.9 * 0.98**5)
    assert found.undecided == pytest.approx(1 - 0.98**5)


@pytest.mark.parametrize("rule", [AND, OR], ids=["and", "or"])
def test_sure_things(rule: TrialRule) -> None:
    assert first_trials(rule, TrialShares(1.0)) == FirstTrials(1.0, 0.0, 0.0, 0.0)
    assert first_trials(rule, TrialShares(0.0)) == FirstTrials(0.0, 1.0, 0.0, 0.0)
    assert first_trials(rule, TrialShares(0.0, 0.0, 1.0)) == FirstTrials(0.0, 0.0, 1.0, 0.0)
    assert first_trials(rule, TrialShares(0.0, 1.0)) == FirstTrials(0.0, 0.0, 0.0, 1.0)


def test_trials_stop_where_the_rule_decides() -> None:
    assert expected_trials(AND, TrialShares(0.5), stops=True) == pytest.approx(1 + 0.5 + 0.25)
    assert expected_trials(OR, TrialShares(0.9), stops=True) == pytest.approx(1 + 0.1 + 0.01)
    assert expected_trials(AND, TrialShares(0.0, 0.0, 1.0), stops=True) == 3
    assert expected_trials(AND, TrialShares(0.5), stops=False) == 3
    assert expected_trials(TrialRule(5, Metric.MEAN), TrialShares(0.5), stops=True) == 5


def test_a_pass_rate_is_of_what_was_measured_and_violated_nothing() -> None:
    assert TrialShares(0.6, 0.1, 0.25).pass_rate == pytest.approx(0.6 / 0.65)
    assert TrialShares(0.0, 0.5, 0.5).pass_rate == 0.0


ADMISSION = Admission(passes=9, of=10)


def share(found, holds) -> float:
    return sum(chance for entry, chance in found if holds(entry))


@pytest.mark.parametrize("rule", [AND, OR], ids=["and", "or"])
@pytest.mark.parametrize("rate", [0.98, 0.8, 0.4])
def test_an_assumed_baseline_is_what_many_histories_are(rule: TrialRule, rate: float) -> None:
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
        of_state = share(found, lambda entry, state=state: entry.state is state)
        assert of_state == pytest.approx(states[state] / n, abs=0.03)
    assert sum(entry.passed * chance for entry, chance in found) == pytest.approx(passed / n, rel=0.01)
    assert share(found, lambda entry: sum(entry.newest[:10]) >= 9) == pytest.approx(admitted / n, abs=0.03)


def test_the_chances_sum_to_1_and_every_run_counts_up_to_a_bound() -> None:
    found = assumed_baseline(AND, 0.9, 20, None)
    assert sum(chance for _, chance in found) == pytest.approx(1)
    assert {entry.n for entry, _ in found} == {60}
    found = assumed_baseline(AND, 0.999, 1000, None)
    assert {entry.n for entry, _ in found} == {MOST_TRIALS}


def test_an_agent_that_never_fails_is_green_and_one_that_never_passes_red_and_too_few_trials_admit_nobody() -> None:
    ((entry, chance),) = assumed_baseline(AND, 1.0, 20, Admission())
    assert (entry.state, entry.passed, entry.n, chance) == (BaselineState.GREEN, 60, 60, 1.0)
    assert entry.newest == (True,) * 20
    ((entry, _),) = assumed_baseline(OR, 0.0, 2, None)
    assert (entry.state, entry.passed) == (BaselineState.RED, 0)
    ((entry, _),) = assumed_baseline(AND, 1.0, 3, Admission(passes=9, of=10))
    assert len(entry.newest) == 9


def test_the_newest_runs_all_red_are_red_whatever_was_before() -> None:
    found = assumed_baseline(AND, 0.5, 8, None)
    assert share(found, lambda entry: entry.state is BaselineState.RED) > (1 - 0.5**3) ** 3


def test_scores_are_as_green_as_they_pass() -> None:
    found = assumed_baseline(TrialRule(5, Metric.MEAN), 0.9, 1, None)
    assert share(found, lambda entry: entry.state is BaselineState.GREEN) == pytest.approx(0.9, abs=1e-5)
