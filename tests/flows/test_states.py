"""The states of Prefect by what a step or a gate has come to."""

import pytest
from prefect.client.schemas.objects import StateType

from passgate.flows.publishing import verdict_labels
from passgate.flows.states import error_state, step_state, verdict_state
from passgate.tasks.errors import UsageError
from passgate.tasks.execution.engine import StepFault
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.verdict import Alarm, AlarmKind, Decision
from tests.builders import a_plan, a_policy, a_task, trials_of, verdict_on


def test_errors_are_told_from_failures_and_secrets_are_masked() -> None:
    masker = Masker(["hunter22"])
    failed = step_state(StepFault("1/3 trials passed; tests: hunter22", is_measured=True), masker)
    assert (failed.type, failed.name, failed.message) == (
        StateType.FAILED,
        "TaskFailed",
        "1/3 trials passed; tests: ***",
    )
    assert step_state(StepFault("the provider is down", is_measured=False), masker).name == "NotMeasured"
    assert step_state(None, masker).type is StateType.COMPLETED


def test_the_state_of_a_verdict_says_the_run_its_place_and_each_reason_in_a_line() -> None:
    task = a_task(k=2)
    plan = a_plan(task)
    verdict = verdict_on(plan, a_policy(), trials_of(task, "pf"), Baseline(branch="main", young="block"))
    state = verdict_state(verdict.model_copy(update={"decision": Decision.FAIL}))
    headline, run, *reasons = str(state.message).split("\n")
    assert state.name == "GateFailed"
    assert headline.startswith("ci_merge ")
    assert run.startswith(f"run {plan.run_id}, kept in {RunStore.of(plan.run_id).location} on ")
    assert any(task.name in reason for reason in reasons)
    inconclusive = verdict_state(verdict.model_copy(update={"decision": Decision.INCONCLUSIVE}))
    assert (inconclusive.type, inconclusive.name) == (StateType.FAILED, "GateInconclusive")


def test_a_flow_without_a_verdict_names_the_cause_and_keeps_the_exception() -> None:
    error = UsageError("no such gate")
    assert (error_state(error).name, error_state(error).message) == ("GateNotRun", "no such gate")
    assert error_state(ZeroDivisionError("x")).name == "GateCrashed"


def test_a_pass_with_an_alarm_is_red_and_says_it() -> None:
    task = a_task()
    verdict = verdict_on(a_plan(task), a_policy(), trials_of(task, "ppp"), Baseline(branch="main"))
    passed = verdict.model_copy(update={"decision": Decision.PASS, "reasons": ()})
    assert verdict_state(passed).name == "GatePassed"
    alarmed = verdict_state(passed.model_copy(update={"alarms": (Alarm(kind=AlarmKind.DRIFT, message="it sinks"),)}))
    assert (alarmed.name, alarmed.type) == ("GateAlarm", StateType.FAILED)
    assert "alarm: it sinks" in str(alarmed.message)


@pytest.mark.parametrize(
    ("decision", "alarms", "shown"),
    [
        (Decision.PASS, (), ("PASS", "none", "false")),
        (Decision.FAIL, (), ("FAIL", "none", "true")),
        (Decision.INCONCLUSIVE, (), ("INCONCLUSIVE", "none", "true")),
        (
            Decision.PASS,
            (AlarmKind.DRIFT, AlarmKind.DRIFT, AlarmKind.BELOW_FLOOR),
            ("PASS", "below_floor,drift", "true"),
        ),
    ],
)
def test_whatever_is_no_clean_pass_is_red(
    decision: Decision, alarms: tuple[AlarmKind, ...], shown: tuple[str, str, str]
) -> None:
    task = a_task(k=1)
    verdict = verdict_on(a_plan(task), a_policy(), trials_of(task, "p"), Baseline(branch="main"))
    given = {"decision": decision, "alarms": tuple(Alarm(kind=kind, message="") for kind in alarms)}
    names = ("passgate.decision", "passgate.alarms", "passgate.red")
    assert verdict_labels(verdict.model_copy(update=given)) == dict(zip(names, shown, strict=True))
