"""How a verdict came about, made by hand: evidence, admission, integrity and sign-off."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.unit.reports.hostile import HOSTILE

from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Edit
from passgate.tasks.model.verdict import (
    Confirmation,
    Decision,
    Exemption,
    Finding,
    Integrity,
    OtherVerdict,
    Reason,
    SignOff,
)


def a_confirmation(task: str, finding: Finding, **changes: Any) -> Confirmation:
    """A task with 5 of 12 trials passed, 58 of 60 at the baseline, with changes."""
    plain: dict[str, Any] = {
        "task": task,
        "finding": finding,
        "passed": 5,
        "n": 12,
        "confirming": 9,
        "baseline_passed": 58,
        "baseline_n": 60,
        "alpha": 0.001,
    }
    return Confirmation(**plain | changes)


def confirmations(
    fits: TaskMeasurement, undecided: TaskMeasurement, fallen: TaskMeasurement
) -> tuple[Confirmation, ...]:
    """One of every finding but `not finished`, the fallen one last."""
    return (
        a_confirmation(fits.name, Finding.FITS, passed=7, baseline_passed=51),
        a_confirmation(undecided.name, Finding.UNDECIDED, passed=50, n=60, confirming=57, baseline_n=61),
        a_confirmation(fallen.name, Finding.FALLEN),
    )


def not_admitted(red: TaskMeasurement) -> tuple[Exemption, ...]:
    """Twelve tasks, the last of which is the red one."""
    why = "not admitted yet: {} of {} trials passed on main, 19 of 20 are required"
    green = [Exemption(task=f"golden/new-{one:02}", why=why.format(one, one + 1)) for one in range(11)]
    return (*green, Exemption(task=red.name, why=why.format(3, 12)))


def an_integrity(**changes: Any) -> Integrity:
    """Eleven edits, and a change whose own files would have let everything pass but for six hostile reasons."""
    files = [f"suites/golden/task-{one:02}.yaml" for one in range(9)]
    plain: dict[str, Any] = {
        "base": "fedcba9876543210fedcba9876543210fedcba98",
        "edits": (
            Edit(path="gates.yaml", kind="changed", what="policy"),
            *(Edit(path=file, kind="changed", what="tasks and graders") for file in files),
            Edit(path=HOSTILE, kind="deleted", what="quarantine"),
        ),
        "change": OtherVerdict(
            decision=Decision.FAIL,
            headline="ci_merge FAIL: 6 blocking reasons",
            reasons=(
                Reason(rule=Rule.COST, blocking=False, message="not blocking there either"),
                *(Reason(rule=Rule.TASK_FAILED, blocking=True, message=f"{one} {HOSTILE}") for one in range(6)),
            ),
        ),
    }
    return Integrity(**plain | changes)


a_sign_off = partial(
    SignOff,
    by="ada",
    decision="approve",
    reason="read it",
    at=datetime(2026, 4, 1, 9, 30, tzinfo=UTC),
    verdict_digest="v" * 16,
)
"""An approval by ada."""
