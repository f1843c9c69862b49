"""Which tasks have shown themselves on the baseline branch."""

from typing import Any

import pytest

from passgate.tasks.gates.exemptions import admission_in_force, not_admitted
from passgate.tasks.model.baseline import Baseline, BaselineState
from passgate.tasks.model.policy import Admission, GatePolicy
from passgate.tasks.model.task import GateName, Suite
from passgate.tasks.model.verdict import Exemption
from tests.builders import a_baseline, a_baseline_task, a_policy, a_task, measured, trials_of

TASK, OTHER = a_task(), a_task(task_id="other")
MEASURED = measured((TASK, trials_of(TASK, "ppf"))).tasks[0]


def policy(admission: Any) -> GatePolicy:
    return a_policy(admission=admission).gates[GateName.CI_MERGE]


NINETEEN_OF_TWENTY = policy({})


def baseline(newest: str) -> Baseline:
    """What is known of the task, its newest trial first, beside another task that is known too."""
    of_task = a_baseline_task(newest=tuple(letter == "p" for letter in newest))
    return Baseline(
        branch="main", tasks={"golden/say-yes": of_task, "golden/other": a_baseline_task(newest=(True,) * 20)}
    )


def why(policy: GatePolicy, newest: str) -> str | None:
    exempt = not_admitted(policy, MEASURED, baseline(newest))
    assert exempt is None or exempt.task == "golden/say-yes"
    return exempt and exempt.why


@pytest.mark.parametrize(
    ("newest", "expected"),
    [
        ("p" * 20, None),
        ("f" + "p" * 19, None),
        ("ff" + "p" * 18, "not admitted yet: 18 of 20 trials passed on main, 19 of 20 are required"),
        ("p" * 19, "not admitted yet: 19 of 19 trials passed on main, 19 of 20 are required"),
        ("p" * 12, "not admitted yet: 12 of 12 trials passed on main, 19 of 20 are required"),
        ("f" * 20, "not admitted yet: 0 of 20 trials passed on main, 19 of 20 are required"),
        ("", "not admitted yet: no trial was measured on main, 19 of 20 are required"),
    ],
)
def test_a_task_shows_itself_before_it_blocks(newest: str, expected: str | None) -> None:
    assert why(NINETEEN_OF_TWENTY, newest) == expected


def test_only_the_newest_trials_count() -> None:
    assert why(NINETEEN_OF_TWENTY, "p" * 20 + "f" * 30) is None
    assert why(NINETEEN_OF_TWENTY, "f" * 20 + "p" * 30) is not None


@pytest.mark.parametrize(("newest", "is_admitted"), [("pp", True), ("pf", True), ("ff", False), ("p", False)])
def test_how_many_is_the_policys(newest: str, is_admitted: bool) -> None:
    assert (why(policy({"passes": 1, "of": 2}), newest) is None) is is_admitted


@pytest.mark.parametrize("newest", ["", "f" * 20])
def test_without_admission_every_task_blocks(newest: str) -> None:
    assert why(policy(False), newest) is None


def test_a_task_or_suite_that_the_baseline_does_not_know() -> None:
    exempt = not_admitted(NINETEEN_OF_TWENTY, MEASURED, a_baseline(OTHER, newest=(True,) * 20))
    assert exempt == Exemption(
        task="golden/say-yes", why="not admitted yet: no trial was measured on main, 19 of 20 are required"
    )
    # Ten trials a run admit after two runs, three after seven.
    adversarial = a_task(suite=Suite.ADVERSARIAL)
    assert not_admitted(NINETEEN_OF_TWENTY, MEASURED, a_baseline(adversarial, newest=(True,) * 20)) is None


@pytest.mark.parametrize(
    ("known", "in_force"),
    [
        (Baseline(branch="main"), False),
        (a_baseline(TASK, OTHER, state=BaselineState.NEW, newest=()), False),
        (a_baseline(OTHER), False),
        (a_baseline(OTHER, newest=(True,) * 19), False),
        (a_baseline(OTHER, newest=(True,) * 19 + (False,)), True),
    ],
)
def test_in_a_history_that_has_just_begun_every_task_blocks(known: Baseline, in_force: bool) -> None:
    assert admission_in_force(Admission(), known, Suite.GOLDEN) is in_force
    assert (not_admitted(NINETEEN_OF_TWENTY, MEASURED, known) is not None) is in_force
