"""Errors that an agent may have provoked to be tried again."""

from collections.abc import Sequence

import pytest

from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import Decision
from tests.builders import a_task, trials_of
from tests.unit.gates.rulings import rule

TASKS = [a_task(task_id=f"t{number}") for number in range(33)]


def with_errors(task: EvalTask, errors: Sequence[int], statuses: str = "ppp") -> tuple[EvalTask, list[Trial]]:
    """Three trials, with so many errors before each."""
    trials = [
        trial.model_copy(update={"late_errors": count, "late_error": "it answered 500" if count else ""})
        for trial, count in zip(trials_of(task, statuses, steps=1), errors, strict=True)
    ]
    return task, trials


@pytest.mark.parametrize(
    ("errors_of_one", "errors_elsewhere", "decision"),
    [
        *(((0, 0, 0), 0, Decision.PASS), ((1, 0, 0), 0, Decision.PASS), ((1, 1, 0), 0, Decision.INCONCLUSIVE)),
        ((1, 1, 1), 2, Decision.INCONCLUSIVE),
        ((1, 1, 0), 32, Decision.PASS),
    ],
)
def test_errors_of_one_task_that_the_others_do_not_explain_leave_the_gate_open(
    errors_of_one: tuple[int, int, int], errors_elsewhere: int, decision: Decision
) -> None:
    groups = [with_errors(TASKS[0], errors_of_one)]
    groups += [with_errors(task, (int(n < errors_elsewhere), 0, 0)) for n, task in enumerate(TASKS[1:])]
    ruling = rule(*groups)
    assert ruling.decision is decision
    if decision is Decision.INCONCLUSIVE:
        (reason,) = ruling.reasons
        assert (reason.rule, reason.task_id) == (Rule.MISSING_EVIDENCE, "t0")
        assert f"{sum(errors_of_one)} of {3 + sum(errors_of_one)} attempts became an error" in reason.message
        assert reason.message.endswith("it answered 500")


@pytest.mark.parametrize(("statuses", "decision"), [("ppp", Decision.INCONCLUSIVE), ("ppf", Decision.FAIL)])
def test_the_only_task_of_a_run_is_held_against_what_providers_do(statuses: str, decision: Decision) -> None:
    ruling = rule(with_errors(TASKS[0], (1, 1, 0), statuses))
    assert ruling.decision is decision
    assert any("became errors after the agent had begun its work, in golden/t0 (2)" in note for note in ruling.notes)
