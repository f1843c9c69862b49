"""A whole suite in the light of its baseline."""

from typing import Any

import pytest

from passgate.tasks.gates.decide import Ruling
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Decision, Finding
from tests.builders import a_task
from tests.unit.gates.rulings import green_before, of, rule
from tests.unit.gates.test_decide_failures import SETTLED

TASKS = [a_task(task_id=f"t{number}") for number in range(10)]


def ruling(statuses: str, count: int = 10, *, failing: str = "fpp", **policy: Any) -> Ruling:
    """Some tasks with the first statuses, the others with trials of which one failed but fits its baseline."""
    groups = [of(failing + statuses, task) for task in TASKS[:count]] + [of("ppp" + statuses, t) for t in TASKS[count:]]
    before = green_before(*TASKS, **SETTLED | {"passed": 57})
    return rule(*groups, baseline=before, regression={"mode": "evidence"}, **policy)


def test_a_suite_whose_tasks_all_fail_a_little_has_fallen() -> None:
    found = ruling("p" * 30)
    (suite,) = found.suite_confirmations
    assert (suite.finding, suite.failed, suite.n, suite.tasks) == (Finding.FALLEN, 10, 30, 10)
    (reason,) = [one for one in found.reasons if one.blocking]
    assert (found.decision, reason.rule, reason.suite) == (Decision.FAIL, Rule.SUITE_REGRESSION, Suite.GOLDEN)
    assert reason.message.startswith("fallen: 10 of 30 trials of its 10 tasks failed; 1.5 are expected by the baseline")


def test_a_suite_as_before_fits() -> None:
    found = ruling("p" * 30, 1)
    assert (found.decision, found.suite_confirmations[0].finding) == (Decision.PASS, Finding.FITS)
    found = ruling("", 4, failing="ppp")
    assert found.decision is Decision.PASS
    found = ruling("p" * 30, 3)
    assert found.suite_confirmations[0].finding is Finding.FITS
    assert any("golden: no large fall shown: " in note for note in found.notes)


def test_a_gate_that_does_not_block_on_suites_only_reports() -> None:
    blocks_on = ["golden_regression", "task_failed"]
    found = ruling("p" * 30, blocks_on=blocks_on)
    assert found.decision is Decision.PASS
    assert [one.rule for one in found.reasons if one.rule is Rule.SUITE_REGRESSION] == [Rule.SUITE_REGRESSION]


@pytest.mark.parametrize(
    ("count", "baseline"), [(4, SETTLED | {"passed": 57}), (10, {"passed": 12, "n": 12})], ids=["few", "thin"]
)
def test_few_tasks_or_thin_baselines_are_no_suite(count: int, baseline: dict[str, Any]) -> None:
    groups = [of("fpp" + "p" * 30, task) for task in TASKS[:count]]
    known = green_before(*TASKS, **baseline)
    assert rule(*groups, baseline=known, regression={"mode": "evidence"}).suite_confirmations == ()


def test_an_outage_among_the_runs_of_the_baseline_hides_no_fall_and_is_named() -> None:
    tasks = [a_task(task_id=f"t{number:02}") for number in range(20)]
    counts = {f"r{run:02}": ((0 if run == 5 else 3), 3) for run in reversed(range(20))}
    before = green_before(*tasks, **SETTLED | {"passed": 57, "counts": counts})
    groups = [of("fff", task) for task in tasks[:15]] + [of("ppp", task) for task in tasks[15:]]
    found = rule(*groups, baseline=before, regression={"mode": "evidence"})
    assert found.decision is Decision.FAIL
    assert any(note.startswith("the run r05 of the baseline is far from all others, 0 of 60 ") for note in found.notes)


def test_the_drift_in_force_is_a_note() -> None:
    tasks = [a_task(task_id=f"t{number:02}") for number in range(20)]
    counts = {f"r{run:02}": ((2 if run % 2 else 3), 3) for run in reversed(range(20))}
    before = green_before(*tasks, **SETTLED | {"passed": 50, "counts": counts})
    found = rule(*[of("ppp", task) for task in tasks], baseline=before, regression={"mode": "evidence"})
    assert any("whole runs of the baseline differ by 20 points (drift)" in note for note in found.notes)
