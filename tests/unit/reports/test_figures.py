"""Numbers as readers see them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.reports.measurements import a_failed_task, a_stopped_task, a_task
from tests.unit.reports.provenance import a_confirmation

from passgate.tasks.model.measurement import Interval
from passgate.tasks.model.task import SequentialTest
from passgate.tasks.model.verdict import Comparison, Finding
from passgate.tasks.reports import figures


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (None, "-"),
        (0.0, "0 %"),
        (0.0001, "< 0.1 %"),
        (0.004, "0.4 %"),
        (0.441, "44 %"),
        (0.995, "100 %"),
        (299 / 300, "99.7 %"),
        (0.9999, "> 99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_percent(share: float | None, shown: str) -> None:
    assert figures.percent(share) == shown


@given(st.floats(min_value=0, max_value=1))
def test_percent_says_none_and_all_of_nothing_else(share: float) -> None:
    assert (figures.percent(share) == "100 %") == (share == 1)
    assert (figures.percent(share) == "0 %") == (share == 0)


def test_interval() -> None:
    assert figures.interval(Interval(low=0.438, high=1.0)) == "[44 %, 100 %]"
    assert figures.interval(None) == "-"


@pytest.mark.parametrize(
    ("metric", "k", "shown"),
    [
        ("pass^k", "3", "pass^3"),
        ("pass@k", 5, "pass@5"),
        ("pass^k", "3-10", "pass^k"),
        ("pass@k, pass^k", "5", "pass@5, pass^5"),
    ],
)
def test_metric_name(metric: str, k: str | int, shown: str) -> None:
    assert figures.metric_name(metric, k) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(None, "-"), (0.0, "$0.0000"), (0.01234, "$0.0123"), (12.346, "$12.35"), (1234.5, "$1,234.50")],
)
def test_dollars(amount: float | None, shown: str) -> None:
    assert figures.dollars(amount) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "-"),
        (0.04, "0.0 s"),
        (12.34, "12.3 s"),
        (59.96, "1m00s"),
        (185, "3m05s"),
        (3599.6, "1h00m"),
        (7620, "2h07m"),
    ],
)
def test_duration(seconds: float | None, shown: str) -> None:
    assert figures.duration(seconds) == shown


@pytest.mark.parametrize(
    ("number", "unit", "shown"),
    [
        (12.34, "s", "12.3 s"),
        (0.5, "$", "$0.5000"),
        (1234.5, "ms", "1,234 ms"),
        (12.345, "ms", "12.3 ms"),
        (3, "", "3"),
    ],
)
def test_quantity(number: float, unit: str, shown: str) -> None:
    assert figures.quantity(number, unit) == shown


def test_change() -> None:
    assert figures.change(10, 12.7) == "+27 %"
    assert figures.change(10, 9) == "-10 %"
    assert figures.change(0, 9) == "-"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("cost", 0.0123, "$0.0123"),
        ("tool_error_rate", 0.05, "5 %"),
        ("p95_step_latency_ms", 1834.2, "1,834 ms"),
        ("wall_time_seconds", 12.3, "12.3 s"),
        ("time_to_first_token", 0.8, "0.8 s"),
        ("total_tokens", 18340, "18,340"),
        ("steps", 6.25, "6.2"),
        ("steps", None, "-"),
    ],
)
def test_tracked_metric_has_the_unit_of_its_name(name: str, value: float | None, shown: str) -> None:
    assert figures.tracked(name, value) == shown


def test_why_label_says_which_trial_the_text_is_of() -> None:
    assert figures.why_label((2,), "failed") == "trial 2 failed:"
    assert figures.why_label((3, 5), "failed") == "trials 3, 5 failed; trial 3:"
    assert figures.why_label((), "failed") == "failed:"


@pytest.mark.parametrize(
    ("errors", "not_run", "shown"),
    [(0, 0, "7/9"), (1, 0, "7/9 +1 error"), (0, 2, "7/9 +2 not run"), (2, 1, "7/9 +2 errors +1 not run")],
)
def test_trials_show_what_is_missing_apart(errors: int, not_run: int, shown: str) -> None:
    assert figures.trials(7, 9, errors, not_run) == shown


def test_task_summary_says_what_is_missing() -> None:
    assert figures.task_summary(a_task()) == "3/3 trials passed, pass^3 100 %, pass rate 100 % [44 %, 100 %]"
    short = a_task(passed=1, errors=1, planned=3, pass_hat_k=None)
    assert figures.task_summary(short).startswith("1/1 trials passed, 1 error, 3 planned, pass^3 undefined, ")
    no_money = a_task(passed=1, errors=1, not_run=1, planned=3, pass_hat_k=None)
    assert figures.task_summary(no_money).startswith("1/1 trials passed, 1 error, 1 not run, pass^3 undefined, pass ")


def test_task_summary_of_a_task_that_was_stopped_early_tells_no_estimate_that_is_not_there() -> None:
    assert figures.task_summary(a_stopped_task()) == "1/2 trials passed, 3 not run, decided early, pass^5 0 %"
    unknown = a_stopped_task(pass_hat_k=None, errors=1, not_run=2)
    assert figures.task_summary(unknown) == "1/2 trials passed, 1 error, 2 not run, decided early"


def test_task_summary_of_a_sequential_test_tells_what_it_has_decided() -> None:
    test = SequentialTest(accept=0.99, reject=0.7)
    assert figures.task_summary(a_stopped_task(sequential=test)) == (
        "1/2 trials passed, 3 not run, decided early, sequential test: failed"
    )


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        ((4, 5, 0), ", 4/9 confirming trials passed"),
        ((4, 5, 2), ", 4/9 confirming trials passed +2 errors"),
        ((0, 0, 1), ", 0/0 confirming trials passed +1 error"),
        ((0, 0, 0), "[6 %, 79 %]"),
    ],
)
def test_task_summary_tells_confirming_trials_apart(counts: tuple[int, int, int], shown: str) -> None:
    passed, failed, errors = counts
    confirming = (True,) * passed + (False,) * failed
    summary = figures.task_summary(a_failed_task(confirming=confirming, confirming_errors=errors))
    assert summary.startswith("1/3 trials passed, ")
    assert summary.endswith(shown)


@pytest.mark.parametrize(("confirming", "shown"), [(9, "9 confirming trials"), (1, "1 confirming trial")])
def test_against_baseline(confirming: int, shown: str) -> None:
    confirmation = a_confirmation("golden/x", Finding.FALLEN, confirming=confirming)
    assert figures.against_baseline(confirmation) == f"5/12 now, 58/60 at the baseline, {shown}"


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
