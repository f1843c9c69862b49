"""Numbers as readers see them."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.reports.measurements import a_failed_task, a_stopped_task, a_task

from passgate.tasks.model.measurement import Interval, TaskMeasurement
from passgate.tasks.model.verdict import Comparison
from passgate.tasks.reports import figures


@pytest.mark.parametrize(
    ("figure", "arguments", "shown"),
    [
        (figures.percent, (None,), "-"),
        (figures.percent, (0.0,), "0 %"),
        (figures.percent, (0.0001,), "< 0.1 %"),
        (figures.percent, (0.004,), "0.4 %"),
        (figures.percent, (0.441,), "44 %"),
        (figures.percent, (0.995,), "100 %"),
        (figures.percent, (299 / 300,), "99.7 %"),
        (figures.percent, (0.9999,), "> 99.9 %"),
        (figures.percent, (1.0,), "100 %"),
        (figures.interval, (Interval(low=0.438, high=1.0),), "[44 %, 100 %]"),
        (figures.interval, (None,), "-"),
        (figures.metric_name, ("pass^k", "3"), "pass^3"),
        (figures.metric_name, ("pass@k", 5), "pass@5"),
        (figures.metric_name, ("pass^k", "3-10"), "pass^k"),
        (figures.metric_name, ("pass@k, pass^k", "5"), "pass@5, pass^5"),
        (figures.dollars, (None,), "-"),
        (figures.dollars, (0.0,), "$0.0000"),
        (figures.dollars, (0.01234,), "$0.0123"),
        (figures.dollars, (12.346,), "$12.35"),
        (figures.dollars, (1234.5,), "$1,234.50"),
        (figures.duration, (None,), "-"),
        (figures.duration, (0.04,), "0.0 s"),
        (figures.duration, (12.34,), "12.3 s"),
        (figures.duration, (59.96,), "1m00s"),
        (figures.duration, (185,), "3m05s"),
        (figures.duration, (3599.6,), "1h00m"),
        (figures.duration, (7620,), "2h07m"),
        (figures.quantity, (12.34, "s"), "12.3 s"),
        (figures.quantity, (0.5, "$"), "$0.5000"),
        (figures.quantity, (1234.5, "ms"), "1,234 ms"),
        (figures.quantity, (12.345, "ms"), "12.3 ms"),
        (figures.quantity, (3, ""), "3"),
        (figures.change, (10, 12.7), "+27 %"),
        (figures.change, (10, 9), "-10 %"),
        (figures.change, (0, 9), "-"),
        (figures.tracked, ("cost", 0.0123), "$0.0123"),
        (figures.tracked, ("tool_error_rate", 0.05), "5 %"),
        (figures.tracked, ("p95_step_latency_ms", 1834.2), "1,834 ms"),
        (figures.tracked, ("wall_time_seconds", 12.3), "12.3 s"),
        (figures.tracked, ("time_to_first_token", 0.8), "0.8 s"),
        (figures.tracked, ("total_tokens", 18340), "18,340"),
        (figures.tracked, ("steps", 6.25), "6.2"),
        (figures.tracked, ("steps", None), "-"),
        (figures.why_label, ((2,), "failed"), "trial 2 failed:"),
        (figures.why_label, ((3, 5), "failed"), "trials 3, 5 failed; trial 3:"),
        (figures.why_label, ((), "failed"), "failed:"),
        (figures.trials, (7, 9, 0, 0), "7/9"),
        (figures.trials, (7, 9, 1, 0), "7/9 +1 error"),
        (figures.trials, (7, 9, 0, 2), "7/9 +2 not run"),
        (figures.trials, (7, 9, 2, 1), "7/9 +2 errors +1 not run"),
    ],
)
def test_a_figure_as_readers_see_it(figure: Callable[..., str], arguments: tuple[object, ...], shown: str) -> None:
    assert figure(*arguments) == shown


@given(st.floats(min_value=0, max_value=1))
def test_percent_says_none_and_all_of_nothing_else(share: float) -> None:
    assert (figures.percent(share) == "100 %") == (share == 1)
    assert (figures.percent(share) == "0 %") == (share == 0)


def confirmed(passed: int, failed: int, errors: int) -> TaskMeasurement:
    return a_failed_task(confirming=(True,) * passed + (False,) * failed, confirming_errors=errors)


SHORT = {"passed": 1, "planned": 3, "pass_hat_k": None}
RATE = "pass rate 100 % [44 %, 100 %]"
FAILED = "1/3 trials passed, pass^3 0 %, pass rate 33 % [6 %, 79 %]"


@pytest.mark.parametrize(
    ("task", "summary"),
    [
        (a_task(), f"3/3 trials passed, pass^3 100 %, {RATE}"),
        (a_task(**SHORT, errors=1), f"1/1 trials passed, 1 error, 3 planned, pass^3 undefined, {RATE}"),
        (a_task(**SHORT, errors=1, not_run=1), f"1/1 trials passed, 1 error, 1 not run, pass^3 undefined, {RATE}"),
        (a_stopped_task(), "1/2 trials passed, 3 not run, decided early, pass^5 0 %"),
        (
            a_stopped_task(pass_hat_k=None, errors=1, not_run=2),
            "1/2 trials passed, 1 error, 2 not run, decided early",
        ),
        (confirmed(0, 0, 0), FAILED),
        (confirmed(4, 5, 0), f"{FAILED}, 4/9 confirming trials passed"),
        (confirmed(4, 5, 2), f"{FAILED}, 4/9 confirming trials passed +2 errors"),
        (confirmed(0, 0, 1), f"{FAILED}, 0/0 confirming trials passed +1 error"),
    ],
)
def test_a_task_in_short_says_what_is_missing_and_tells_no_estimate_that_is_not_there(
    task: TaskMeasurement, summary: str
) -> None:
    assert figures.task_summary(task) == summary


@pytest.mark.parametrize(
    ("levels", "shown"),
    [((0.9, 0.9), "lower 90 % bound"), ((0.975,), "lower 97.5 % bound"), ((0.95, 0.9), "lower 90 % or 95 % bound")],
)
def test_a_bound_is_of_the_confidence_that_the_comparison_says(levels: tuple[float, ...], shown: str) -> None:
    plain = {"name": "cost", "unit": "$", "baseline": 1, "current": 1, "pairs": 1, "ratio": 1, "limit": ""}
    comparisons = [Comparison.model_validate({**plain, "ratio_lower_bound": 1, "confidence": one}) for one in levels]
    explained = figures.paired_ratio_explained(comparisons)
    assert explained == f"paired ratio: the geometric mean over the tasks of now / baseline; at least: its {shown}."


def test_by_how_much_runs_differ_is_said() -> None:
    plain = {"unit": "", "baseline": 1, "current": 1, "pairs": 9, "ratio": 1, "ratio_lower_bound": 1, "limit": ""}
    drifts = {"latency P95": 0.084, "cost": 0.0, "other": None}
    comparisons = [Comparison.model_validate({**plain, "name": name, "drift": one}) for name, one in drifts.items()]
    explained = figures.paired_ratio_explained(comparisons)
    assert explained.endswith(" bound. Whole runs of the baseline differ by 8 % (latency P95), 0 % (cost).")
