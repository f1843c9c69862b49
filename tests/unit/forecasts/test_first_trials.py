"""What the first k trials of a task come to."""

import random
from collections import Counter

import pytest

from passgate.tasks.forecasts.first_trials import FirstTrials, TrialRule, TrialShares, expected_trials, first_trials
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import Metric, SequentialTest
from passgate.tasks.stats.decision import decide_by, operating_characteristic
from tests.builders import a_task, trials_of

AND, OR = TrialRule(3, Metric.PASS_HAT_K), TrialRule(3, Metric.PASS_AT_K)
TEST = SequentialTest(accept=0.95, reject=0.7)


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


def test_a_sequential_test_does_what_it_does() -> None:
    rule = TrialRule(20, Metric.PASS_HAT_K, TEST)
    operating = operating_characteristic(TEST, 20, 0.9)
    assert first_trials(rule, TrialShares(0.9)).failed == pytest.approx(1 - operating.accepts)
    assert expected_trials(rule, TrialShares(0.9), stops=True) == operating.expected_trials
    assert expected_trials(rule, TrialShares(0.9), stops=False) == 20


def test_trials_stop_where_the_rule_decides() -> None:
    assert expected_trials(AND, TrialShares(0.5), stops=True) == pytest.approx(1 + 0.5 + 0.25)
    assert expected_trials(OR, TrialShares(0.9), stops=True) == pytest.approx(1 + 0.1 + 0.01)
    assert expected_trials(AND, TrialShares(0.0, 0.0, 1.0), stops=True) == 3
    assert expected_trials(AND, TrialShares(0.5), stops=False) == 3
    assert expected_trials(TrialRule(5, Metric.MEAN), TrialShares(0.5), stops=True) == 5


def test_a_pass_rate_is_of_what_was_measured_and_violated_nothing() -> None:
    assert TrialShares(0.6, 0.1, 0.25).pass_rate == pytest.approx(0.6 / 0.65)
    assert TrialShares(0.0, 0.5, 0.5).pass_rate == 0.0
