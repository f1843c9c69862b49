"""What a verdict costs."""

import pytest

from passgate.tasks.model.baseline import BaselineTask
from passgate.tasks.model.forecast import Effort
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import Metric, SequentialTest, Suite
from passgate.tasks.stats.decision import operating_characteristic
from tests.builders import a_baseline_task, a_task, in_two_runs
from tests.unit.forecasts.settings import EVIDENCE, STRICT, foresee, setting, tasks

GREEN = a_baseline_task(passed=59, n=60, costs=in_two_runs(0.1, 0.3), wall_times=in_two_runs(4.0, 8.0))
TEST = SequentialTest(accept=0.95, reject=0.7)


def effort(*of, rate: float = 0.9, known: BaselineTask | list | None = GREEN, **gate) -> Effort:
    return foresee(setting(of, rate, known=known, **gate)).effort


def test_planned_trials_are_all_k_and_confirming_ones_come_beside_them() -> None:
    found = effort(*tasks(2), a_task(task_id="x", k=5), **STRICT)
    assert (found.planned, found.confirming, found.saved, found.trials) == (11, 0, 0, 11)
    found = effort(*tasks(3), **EVIDENCE)
    assert found.confirming > 0
    assert found.trials == 9 + found.confirming


def test_curtailment_saves_what_comes_after_what_decides() -> None:
    expected = 1 + 0.9 + 0.81
    assert effort(*tasks(2), **{**STRICT, "curtailment": True}).saved == pytest.approx(2 * (3 - expected))
    assert effort(*tasks(2), **{**EVIDENCE, "curtailment": True}).saved == 0
    task = a_task(suite=Suite.OPEN_ENDED, metric=Metric.PASS_AT_K)
    gate = {**STRICT, "suites": ["open_ended"], "curtailment": True}
    assert effort(task, **gate).saved == pytest.approx(3 - (1 + 0.1 + 0.01))


def test_a_sequential_test_stops_when_it_has_decided() -> None:
    task = a_task(k=20, sequential=TEST)
    expected = operating_characteristic(TEST, 20, 0.9).expected_trials
    assert effort(task, **STRICT).saved == pytest.approx(20 - expected)


def test_money_and_time_are_those_of_the_baselines_means() -> None:
    found = effort(*tasks(2), **STRICT)
    assert found.cost == pytest.approx(6 * 0.2)
    assert found.seconds == pytest.approx(6 * 6.0 / 8)
    one = setting(tasks(2), 0.9, known=GREEN, plan={"request": RunRequest(jobs=2)}, **STRICT)
    assert foresee(one).effort.seconds == pytest.approx(6 * 6.0 / 2)
    unknown = a_baseline_task(passed=59, n=60)
    assert effort(*tasks(2), known=[GREEN, unknown], **STRICT).cost == pytest.approx(6 * 0.2)
    assert effort(*tasks(2), known=unknown, **STRICT).cost is None
    assert effort(*tasks(2), known=None, **STRICT).seconds is None
