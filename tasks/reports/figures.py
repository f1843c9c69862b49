"""Numbers as readers see them."""

from collections.abc import Sequence
from itertools import pairwise

from passgate.tasks.model.measurement import Interval, TaskMeasurement

UNKNOWN = "-"


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


def interval(ends: Interval | None, *, between: str = ", ") -> str:
    """`[44 %, 100 %]`."""
    return UNKNOWN if ends is None else f"[{percent(ends.low)}{between}{percent(ends.high)}]"


def trials(passed: int, measured: int, errors: int) -> str:
    """Passed of measured trials, as in `2/3` or `2/3 +1 error`."""
    return f"{passed}/{measured} +{count(errors, 'error')}" if errors else f"{passed}/{measured}"


def task_summary(task: TaskMeasurement) -> str:
    """`1/3 trials passed, pass^3 0 %, pass rate 33 % [6 %, 79 %]`, with errors and what was planned beyond."""
    value = "undefined" if task.value is None else percent(task.value)
    facts = (
        f"{task.passed}/{task.n} trials passed",
        count(task.errors, "error") if task.errors else "",
        f"{task.planned} planned" if task.planned != task.n + task.errors else "",
        f"{metric_name(task.metric, task.k)} {value}",
        f"pass rate {percent(task.pass_rate)} {interval(task.pass_rate_interval)}",
    )
    return ", ".join(fact for fact in facts if fact)


def count(number: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


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
    """A number of any size with its unit, to three digits."""
    if unit in {"$", "USD"}:
        return dollars(number)
    if unit in {"s", "seconds"}:
        return duration(number)
    shown = f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
    return f"{shown} {unit}".strip()


def change(baseline: float, current: float) -> str:
    """By how much current differs from baseline, as in `+27 %`."""
    return f"{(current / baseline - 1) * 100:+.0f} %" if baseline else UNKNOWN


def times(factor: float | None) -> str:
    """`1.18 x`."""
    return UNKNOWN if factor is None else f"{factor:.2f} x"


def tracked(name: str, value: float | None) -> str:
    """One of a trial's metrics, with the unit that its name says."""
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


def trial_numbers(numbers: Sequence[int]) -> str:
    """`trial 4`, `trials 1-3, 7`; at most ten ranges."""
    unique = sorted(set(numbers))
    ranges = _ranges(unique)
    shown = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges[:10])
    more = ", ..." if len(ranges) > 10 else ""
    return f"{'trial' if len(unique) == 1 else 'trials'} {shown}{more}"


def why_label(numbers: Sequence[int], what: str) -> str:
    """Opens the text on the first of these trials: `trial 2 failed:`, `trials 1, 3 failed; trial 1:`."""
    if not numbers:
        return f"{what}:"
    first = f"; trial {numbers[0]}" if len(numbers) > 1 else ""
    return f"{trial_numbers(numbers)} {what}{first}:"


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Runs of consecutive numbers as their first and last."""
    if not numbers:
        return []
    breaks = [(left, right) for left, right in pairwise(numbers) if right != left + 1]
    firsts = [numbers[0], *(right for _, right in breaks)]
    lasts = [*(left for left, _ in breaks), numbers[-1]]
    return list(zip(firsts, lasts, strict=True))
