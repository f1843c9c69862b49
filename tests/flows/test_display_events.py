"""What automations can ask of the event of a verdict; tests/flows/test_deployments.py shows one that fires."""

import pytest

from passgate.flows.display.events import verdict_labels
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.verdict import Alarm, AlarmKind, Decision
from tests.builders import a_plan, a_policy, a_task, trials_of, verdict_on


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
