"""Whether a task has shown itself on the baseline branch long enough to block."""

from collections.abc import Sequence

from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import Admission, GatePolicy
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Exemption


def not_admitted(policy: GatePolicy, task: TaskMeasurement, baseline: Baseline) -> Exemption | None:
    """What a verdict says of a task that may not block yet; `None` for one that may.

    A task is admitted when enough of its newest measured trials at the baseline passed. Without a policy for it, and
    while admission is not in force, every task is.
    """
    if policy.admission is False or not admission_in_force(policy.admission, baseline, task.suite):
        return None
    wanted = policy.admission
    newest = baseline.of(task.name).newest[: wanted.of]
    if _has_shown_itself(wanted, newest):
        return None
    shown = f"{sum(newest)} of {len(newest)} trials passed" if newest else "no trial was measured"
    return Exemption(
        task=task.name,
        why=f"not admitted yet: {shown} on {baseline.branch}, {wanted.passes} of {wanted.of} are required",
    )


def admission_in_force(wanted: Admission, baseline: Baseline, suite: Suite) -> bool:
    """Whether any task of the suite is admitted. In a history that has just begun none can be, and a gate that asked
    for it would not block on the suite at all.
    """
    return any(
        _has_shown_itself(wanted, entry.newest)
        for name, entry in baseline.tasks.items()
        if name.startswith(f"{suite}/")
    )


def _has_shown_itself(wanted: Admission, newest: Sequence[bool]) -> bool:
    counted = newest[: wanted.of]
    return len(counted) == wanted.of and sum(counted) >= wanted.passes
