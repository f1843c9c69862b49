"""What every report says of how a verdict came about."""

import subprocess

import pytest
from tests.unit.reports.measurements import a_stopped_task, a_task
from tests.unit.reports.provenance import a_confirmation, a_sign_off
from tests.unit.reports.verdicts import a_verdict

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.verdict import Decision, Exemption, Finding, OtherVerdict, Reason
from passgate.tasks.reports import findings


def test_fallen_tasks_come_first_and_fitting_ones_last() -> None:
    order = [Finding.FALLEN, Finding.UNFINISHED, Finding.UNDECIDED, Finding.FITS]
    confirmations = tuple(a_confirmation(f"golden/{name}", name) for name in Finding)
    shown = findings.confirmations(a_verdict(Decision.FAIL, (), confirmations=confirmations[::-1]))
    assert [one.finding for one in shown] == order
    assert set(order) == set(Finding)


def test_withheld_tasks_that_did_not_pass_come_first() -> None:
    states = {"a": TaskState.PASSED, "b": TaskState.FAILED, "c": TaskState.UNDECIDED, "d": TaskState.PASSED}
    verdict = a_verdict(Decision.PASS, tuple(a_task(task_id=name, state=state) for name, state in states.items()))
    tasks = [Exemption(task=f"golden/{name}", why="new") for name in (*states, "gone")]
    shown = findings.withheld(verdict, tasks)
    assert [(one.task, is_red) for one, is_red in shown] == [
        ("golden/b", True), ("golden/c", True), ("golden/a", False), ("golden/d", False), ("golden/gone", False),
    ]  # fmt: skip


def test_only_what_would_have_blocked_is_told_of_the_other_verdict() -> None:
    blocking, reported = (Reason(rule=Rule.COST, blocking=blocks, message="dear") for blocks in (True, False))
    other = OtherVerdict(decision=Decision.FAIL, headline="ci_merge FAIL", reasons=(reported, blocking))
    assert findings.blocking(other.reasons) == (blocking,)


@pytest.mark.parametrize(
    ("left_out", "note"),
    [
        ((3,), "3 trials saved by stopping early: 1 task was decided before the last planned trial"),
        ((1,), "1 trial saved by stopping early: 1 task was decided before the last planned trial"),
        ((3, 8), "11 trials saved by stopping early: 2 tasks were decided before the last planned trial"),
    ],
)
def test_trials_saved_are_told_in_a_note(left_out: tuple[int, ...], note: str) -> None:
    tasks = tuple(a_stopped_task(not_run=number) for number in left_out)
    assert findings.notes(a_verdict(Decision.FAIL, tasks, notes=("more",))) == (note, "more")


def test_trials_that_were_not_run_for_want_of_money_are_not_saved() -> None:
    assert findings.notes(a_verdict(Decision.INCONCLUSIVE, (a_task(passed=1, not_run=2),))) == ()


@pytest.mark.parametrize(
    ("runs", "note"),
    [
        (["r1"], "1 task not run again: nothing they depend on has changed since r1"),
        (["r1", "r2", "r2"], "3 tasks not run again: nothing they depend on has changed since r2, r1"),
        (
            ["r1", "r1", "r2", "r3", "r4", "r5"],
            "6 tasks not run again: nothing they depend on has changed since r1, r2, r3 and 2 more",
        ),
    ],
)
def test_reused_tasks_are_told_in_a_note(runs: list[str], note: str) -> None:
    tasks = (a_task(), *(a_task(reused_from=run) for run in runs))
    assert findings.notes(a_verdict(Decision.PASS, tasks)) == (note,)


def test_models_are_named_once_and_counted_beyond_three() -> None:
    def models(*names: tuple[str, ...]) -> str:
        return findings.models(a_verdict(Decision.PASS, tuple(a_task(models=one) for one in names)))

    assert models((), ()) == ""
    assert models(("b", "a"), ("b",)) == "a, b"
    assert models(("a", "b", "c"), ("d", "e")) == "a, b, c and 2 more"


@pytest.mark.parametrize("run", ["20260401T020000Z-release_candidate-5f3a", "a b'c; exit 3"])
def test_a_shell_takes_the_sign_off_commands_as_they_stand(run: str) -> None:
    lines = findings.sign_off_commands(a_verdict(Decision.INCONCLUSIVE, (), run_id=run))
    script = "\n".join(("passgate() { printf '%s|' \"$@\"; echo; }", *lines))
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, timeout=30).stdout
    assert said.splitlines() == [
        f"sign-off|{run}|--by|NAME|--decision|{decision}|--reason|TEXT|" for decision in ("approve", "reject")
    ]


def test_a_sign_off_says_who_when_and_why() -> None:
    assert findings.signed(a_sign_off()) == "approved by ada at 2026-04-01 09:30:00+00:00: read it"
    assert findings.signed(a_sign_off(decision="reject")).startswith("rejected by ada at ")
