"""What a gate tells as an alarm, and what it does not."""

from typing import Any

import pytest

from passgate.tasks.judge import suite_alarms
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import SuiteMeasurement
from passgate.tasks.model.policy import GatePolicy
from passgate.tasks.model.task import GateName
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import AlarmKind
from tests.builders import SHIPPED, a_plan, a_policy, a_task, measured, trials_of, verdict_on

TASK = a_task(k=2)


def crashed(letters: str, reason: str = "the agent crashed: exit 1") -> list[Trial]:
    return [one.model_copy(update={"reason": reason if one.reason else ""}) for one in trials_of(TASK, letters)]


def suites(trials: list[Trial]) -> tuple[SuiteMeasurement, ...]:
    return measured((TASK, trials)).suites


def policy(**alarm: Any) -> GatePolicy:
    return GatePolicy.model_validate({"suites": ["golden"], "alarm": alarm})


@pytest.mark.parametrize(
    ("trials", "is_told"),
    [
        (crashed("ff"), True),
        (crashed("fe"), True),
        (crashed("ff", "the agent could not be started: no such file"), True),
        (crashed("pf"), False),
        (crashed("ff", "tests: 1 failed"), False),
        (crashed("ee"), False),
    ],
)
def test_an_agent_that_crashes_in_every_measured_trial_of_a_suite_is_told(trials: list[Trial], is_told: bool) -> None:
    told = suite_alarms(policy(), suites(trials), trials)
    assert [alarm.kind for alarm in told] == [AlarmKind.CRASHED_AGENTS] * is_told
    assert not suite_alarms(policy(crashed_agents=False), suites(trials), trials)


def test_a_suite_below_its_floor_is_told_and_one_at_its_floor_is_not() -> None:
    trials = trials_of(TASK, "pp")
    assert not suite_alarms(policy(floors={"golden": 1.0}), suites(trials), trials)
    trials = trials_of(TASK, "pf")
    (alarm,) = suite_alarms(policy(floors={"golden": 0.1}), suites(trials), trials)
    assert (alarm.kind, alarm.suite) == (AlarmKind.BELOW_FLOOR, TASK.suite)
    assert "0.0%, below its floor of 10.0%" in alarm.message


def test_a_drift_is_told_unless_the_policy_does_not_want_it() -> None:
    (alarm,) = suite_alarms(policy(), (), [], ["golden pass rate 97 % -> 81 %"])
    assert (alarm.kind, alarm.message) == (AlarmKind.DRIFT, "drift: golden pass rate 97 % -> 81 %")
    assert not suite_alarms(policy(drift=False), (), [], ["golden pass rate 97 % -> 81 %"])


def test_alarms_are_notes_and_block_nothing() -> None:
    trials, baseline = crashed("ff"), Baseline(branch="main")
    plan = a_plan(TASK, gate=GateName.NIGHTLY)
    quiet = verdict_on(plan, a_policy(GateName.NIGHTLY, alarm=False), trials, baseline)
    loud = verdict_on(plan, SHIPPED, trials, baseline)
    assert (loud.decision, loud.reasons) == (quiet.decision, quiet.reasons)
    assert [alarm.kind for alarm in loud.alarms] == [AlarmKind.CRASHED_AGENTS, AlarmKind.BELOW_FLOOR]
    assert [note for note in loud.notes if note not in quiet.notes] == [f"alarm: {one.message}" for one in loud.alarms]
