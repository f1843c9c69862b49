"""What a gate will do under one policy."""

import pytest

from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from tests.builders import a_baseline_task
from tests.unit.forecasts.settings import EVIDENCE, STRICT, foresee, setting, tasks

GREEN = a_baseline_task(passed=60, n=60)
THIN = a_baseline_task(passed=3, n=3)


def test_the_seeds_gate_is_red_45_percent_of_the_time() -> None:
    found = foresee(setting(tasks(20), 0.99, **STRICT))
    assert found.red == pytest.approx(0.4528, abs=0.0001)
    assert found.passed == pytest.approx(1 - found.red)


def test_the_shipped_gate_is_not() -> None:
    found = foresee(setting(tasks(20), 0.99, **EVIDENCE))
    assert found.red < 0.02
    assert found.effort.confirming < 0.2 * 60


def test_catching_is_beside_the_strict_rule() -> None:
    strict = foresee(setting(tasks(20), 0.99, known=GREEN, **STRICT))
    evidence = foresee(setting(tasks(20), 0.99, known=GREEN, **EVIDENCE))
    to_90, to_70, to_50 = evidence.catches(strict)
    assert [catch.pass_rate for catch in (to_90, to_70, to_50)] == [0.9, 0.7, 0.5]
    assert to_70.strict_mean == pytest.approx(1 - 0.7**3)
    assert to_70.mean >= 0.9 * to_70.strict_mean
    assert to_50.mean >= 0.95 * to_50.strict_mean
    assert to_90.mean < to_70.mean < to_50.mean


def test_the_worst_task_is_the_one_that_is_caught_least() -> None:
    shaky = a_baseline_task(passed=50, n=60)
    known = [GREEN, shaky, GREEN]
    strict, evidence = (foresee(setting(tasks(3), 0.99, known=known, **one)) for one in (STRICT, EVIDENCE))
    catch = evidence.catches(strict)[1]
    assert (catch.worst_task, catch.tasks) == ("golden/t1", 3)
    assert catch.worst < catch.mean


def test_a_task_whose_baseline_is_too_thin_for_a_verdict_cannot_block_by_falling() -> None:
    warning = {**EVIDENCE, "regression": {"undecided": "warn", "alpha": 0.01}}
    assert foresee(setting(tasks(3), 0.99, known=[GREEN, THIN, GREEN], **warning)).able == [0, 2]


def test_tasks_that_cannot_fall_so_far_or_cannot_block_are_not_counted() -> None:
    red = a_baseline_task(state="red before too", passed=1, n=60)
    known = [GREEN, GREEN, red]
    strict, found = (foresee(setting(tasks(3), [0.99, 0.6, 0.99], known=known, **one)) for one in (STRICT, EVIDENCE))
    assert [catch.tasks for catch in found.catches(strict)] == [1, 1, 2]
    none = foresee(setting(tasks(2), 0.99, **{**EVIDENCE, "blocks_on": []}))
    (catch, *_) = none.catches(strict)
    assert (catch.tasks, catch.mean, catch.worst, catch.worst_task, catch.strict_mean) == (0, None, None, "", None)


def test_causes_share_the_red() -> None:
    found = foresee(setting(tasks(3), [0.9, 1.0, 0.99], known=GREEN, **STRICT))
    first, second = found.causes()
    assert (first.task, first.rule, first.chance) == ("golden/t0", Rule.GOLDEN_REGRESSION, pytest.approx(0.271))
    assert second.task == "golden/t2"
    assert first.share + second.share == pytest.approx(1)
    (rule,) = found.rules()
    assert (rule.rule, rule.share) == (Rule.GOLDEN_REGRESSION, pytest.approx(1))
    rules = {**STRICT, "thresholds": {"golden": 1.0}, "blocks_on": ["threshold"]}
    (cause,) = foresee(setting(tasks(2), 0.9, known=GREEN, **rules)).causes()
    assert (cause.rule, cause.suite, cause.task) == (Rule.THRESHOLD, Suite.GOLDEN, "")
    assert cause.chance == pytest.approx(1 - 0.9**6)


def test_the_curve_goes_through_the_false_red_and_rises() -> None:
    strict, found = (foresee(setting(tasks(5), 0.95, known=GREEN, **one)) for one in (STRICT, EVIDENCE))
    points = found.curve(strict, [1.0, 0.95, 0.7, 0.5, 0.0])
    assert points[1].red == pytest.approx(found.red)
    assert points[1].strict_red == pytest.approx(strict.red)
    assert [point.red for point in points] == sorted(point.red for point in points)
    assert points[-1].red == pytest.approx(1, abs=0.01)


def test_a_gate_that_blocks_on_nothing_is_never_red() -> None:
    found = foresee(setting(tasks(2), 0.9, **{**STRICT, "blocks_on": []}))
    assert [point.red for point in found.curve(found, [1.0, 0.5])] == [0, 0]
    assert found.causes() == found.rules() == []
