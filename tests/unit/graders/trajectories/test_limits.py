from typing import Any

import pytest

from passgate.tasks.graders.trajectories.limits import METRIC_OF_OPTION
from passgate.tasks.model.graders import TrajectoryMetrics
from passgate.tasks.model.trial import TrialMetrics
from tests.unit.graders.trials import Graded

LIMITS = sorted(name for name in TrajectoryMetrics.model_fields if name.startswith(("max_", "min_")))


def options(**fields: Any) -> TrajectoryMetrics:
    return TrajectoryMetrics(type="trajectory_metrics", **fields)


@pytest.mark.parametrize("limit", LIMITS)
async def test_every_limit_is_held_against_its_metric(limit: str, graded: Graded) -> None:
    metric = METRIC_OF_OPTION[limit]
    for value, passes in ((1, True), (0, limit.startswith("max_")), (2, limit.startswith("min_"))):
        result = await graded(options(**{limit: 1}), metrics=TrialMetrics(**{metric: value}))
        assert (result.passed, result.score, result.error) == (passes, float(passes), None)


@pytest.mark.parametrize("limit", LIMITS)
async def test_a_metric_that_was_not_measured_is_an_error(limit: str, graded: Graded) -> None:
    everything = {name: 1 for name in TrialMetrics.model_fields if name != METRIC_OF_OPTION[limit]}
    result = await graded(options(**{limit: 1}), metrics=TrialMetrics(**everything))
    assert result.error.startswith(f"not measured: {METRIC_OF_OPTION[limit]}. ")


async def test_a_metric_that_is_no_number_was_not_measured(graded: Graded) -> None:
    result = await graded(options(max_loop_rate=1), metrics=TrialMetrics(loop_rate=float("nan")))
    assert result.score is None


async def test_a_broken_limit_is_certain_whatever_was_not_measured(graded: Graded) -> None:
    result = await graded(options(max_steps=8, max_total_tokens=10), metrics=TrialMetrics(steps=9))
    assert (result.passed, result.score, result.error) == (False, 0.0, None)
    assert [check.message for check in result.checks] == [
        "steps is 9, expected at most 8",
        "total_tokens was not measured, expected at most 10",
    ]


async def test_kept_limits_do_not_make_up_for_what_was_not_measured(graded: Graded) -> None:
    result = await graded(options(max_steps=8, max_total_tokens=10), metrics=TrialMetrics(steps=1))
    assert (result.passed, result.score) == (False, None)


async def test_a_limit_of_0_is_a_limit(graded: Graded) -> None:
    result = await graded(options(max_tool_calls=0), metrics=TrialMetrics(tool_call_count=1))
    assert (result.passed, result.score) == (False, 0.0)


async def test_the_score_is_the_share_of_kept_limits(graded: Graded) -> None:
    metrics = TrialMetrics(steps=3, loop_rate=0.5)
    result = await graded(options(min_steps=3, max_steps=3, max_loop_rate=0.4), metrics=metrics)
    assert result.score == pytest.approx(2 / 3)
    assert not result.passed


async def test_no_limit_is_no_pass(graded: Graded) -> None:
    result = await graded(options())
    assert (result.passed, result.score) == (False, None)
