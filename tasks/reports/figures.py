"""Numbers as readers see them."""

from collections.abc import Sequence

from passgate.tasks.model.measurement import Interval, SuiteMeasurement, TaskMeasurement
from passgate.tasks.model.trial import trial_numbers
from passgate.tasks.model.verdict import Comparison, Confirmation

UNKNOWN = "-"
SUITE_HEADER = ("suite", "tasks", "trials", "metric", "value", "95 % interval", "steps", "cost", "time")


def percent(share: float | None) -> str:
    """`44 %`. Only what is exactly none or all reads `0 %` or `100 %`: 299 of 300 is `99.7 %`."""
    if share is None:
        return UNKNOWN
    hundredths = share * 100
    if share in {0, 1} or 0.5 <= hundredths <= 99.5:
        return f"{hundredths:.0f} %"
    if 0.05 <= hundredths < 99.95:
        return f"{hundredths:.1f} %"
    return "< 0.1 %" if hundredths < 1 else "> 99.9 %"


def interval(ends: Interval | None) -> str:
    """`[44 %, 100 %]`."""
    return UNKNOWN if ends is None else f"[{percent(ends.low)}, {percent(ends.high)}]"


def trials(passed: int, measured: int, errors: int, not_run: int) -> str:
    """Return passed of measured trials with what is missing, as in `2/3` or `7/9 +1 error +2 not run`."""
    return " +".join((f"{passed}/{measured}", *missing(errors, not_run)))


def missing(errors: int, not_run: int) -> tuple[str, ...]:
    """Trials that say nothing, as in `1 error` and `2 not run`; a kind without trials is left out."""
    return tuple(text for number, text in ((errors, count(errors, "error")), (not_run, f"{not_run} not run")) if number)


def task_summary(task: TaskMeasurement) -> str:
    """`1/3 trials passed, pass^3 0 %, pass rate 33 % [6 %, 79 %]`, then what is missing and the confirming trials.

    For a task that was stopped early or has no measured trial, what cannot be estimated is left out.
    """
    facts = [f"{task.passed}/{task.n} trials passed", *missing(task.errors, task.not_run)]
    # A planned trial that is absent from the run's records counts neither as an error nor as not run.
    if task.planned != task.n + task.errors + task.not_run:
        facts.append(f"{task.planned} planned")
    if task.stopped_early:
        facts.append("decided early")
    if task.value is not None or (task.n and not task.stopped_early):
        facts.append(f"{metric_name(task.metric, task.k)} {'undefined' if task.value is None else percent(task.value)}")
    if task.pass_rate is not None or (task.n and not task.stopped_early):
        facts.append(f"pass rate {percent(task.pass_rate)} {interval(task.pass_rate_interval)}")
    confirming = task.confirming_passed + task.confirming_failed
    if confirming or task.confirming_errors:
        passed = f"{task.confirming_passed}/{confirming} confirming trials passed"
        facts.append(" +".join((passed, *missing(task.confirming_errors, 0))))
    return ", ".join(facts)


def against_baseline(one: Confirmation) -> str:
    """`5/12 now, 58/60 at the baseline, 9 confirming trials`."""
    before = f"{at_baseline(one)} at the baseline"
    return f"{one.passed}/{one.n} now, {before}, {count(one.confirming, 'confirming trial')}"


def at_baseline(one: Confirmation) -> str:
    """`58/60`, with how many of these trials are of the task's version before an edit."""
    edit = f" ({one.before_edit} before the edit)" if one.before_edit else ""
    return f"{one.baseline_passed}/{one.baseline_n}{edit}"


def paired_ratio_explained(comparisons: Sequence[Comparison]) -> str:
    """Return what the columns of comparisons mean, and how far runs of the baseline differ without any change."""
    levels = " or ".join(f"{level * 100:g} %" for level in sorted({one.confidence for one in comparisons}))
    explained = (
        f"paired ratio: the geometric mean over the tasks of now / baseline; at least: its lower {levels} bound."
    )
    drifts = [f"{one.drift * 100:.0f} % ({one.name})" for one in comparisons if one.drift is not None]
    return f"{explained} Whole runs of the baseline differ by {', '.join(drifts)}." if drifts else explained


def suite_cells(suite: SuiteMeasurement) -> tuple[str, ...]:
    """Return a row under `SUITE_HEADER`."""
    return (
        suite.suite,
        f"{suite.tasks_passed}/{suite.tasks}",
        trials(suite.trials_passed, suite.trials_measured, suite.trials_error, suite.trials_not_run),
        metric_name(suite.metric, suite.k),
        percent(suite.value),
        interval(suite.interval),
        decimal(suite.steps),
        dollars(suite.cost),
        duration(suite.wall_time_seconds),
    )


def count(number: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size(number_of_bytes: int) -> str:
    """`1 byte`, `48,113 bytes`."""
    return f"{number_of_bytes:,} byte{'' if number_of_bytes == 1 else 's'}"


def listed(names: Sequence[str], most: int) -> str:
    """Return up to `most` of the names, as in `a, b, c and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def metric_name(metric: str, k: int | str) -> str:
    """`pass^3` of `pass^k` and 3; as it is when k differs between the tasks."""
    return metric.replace("@k", f"@{k}").replace("^k", f"^{k}") if str(k).isdigit() else metric


def dollars(amount: float | None) -> str:
    """`$0.0123`, `$12.35`."""
    if amount is None:
        return UNKNOWN
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


def duration(seconds: float | None) -> str:
    """`4.2 s`, `3m05s`, `2h07m`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}s"
    return f"{minutes // 60}h{minutes % 60:02}m"


def decimal(number: float | None) -> str:
    """`6.3`."""
    return UNKNOWN if number is None else f"{number:,.1f}"


def quantity(number: float, unit: str) -> str:
    """Return a number of any size with its unit, to three digits."""
    if unit in {"$", "USD"}:
        return dollars(number)
    if unit in {"s", "seconds"}:
        return duration(number)
    shown = f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
    return f"{shown} {unit}".strip()


def change(baseline: float, current: float) -> str:
    """Return by how much current differs from baseline, as in `+27 %`."""
    return f"{(current / baseline - 1) * 100:+.0f} %" if baseline else UNKNOWN


def times(factor: float | None) -> str:
    """`1.18 x`."""
    return UNKNOWN if factor is None else f"{factor:.2f} x"


def tracked(name: str, value: float | None) -> str:
    """Return one of a trial's metrics, with the unit that its name says."""
    if value is None:
        return UNKNOWN
    if name == "cost":
        return dollars(value)
    if name.endswith("_rate"):
        return percent(value)
    if name.endswith("_ms"):
        return quantity(value, "ms")
    if name.endswith("_seconds") or name == "time_to_first_token":
        return duration(value)
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def why_label(numbers: Sequence[int], what: str) -> str:
    """Return the words before the text on the first of these trials, as in `trials 1, 3 failed; trial 1:`."""
    if not numbers:
        return f"{what}:"
    first = f"; trial {numbers[0]}" if len(numbers) > 1 else ""
    return f"{trial_numbers(numbers)} {what}{first}:"
