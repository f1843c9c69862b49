"""Which run tells a drift of the history, and which one has none to tell."""

from typing import Any

import pytest
from bench.generated_history import night_id

from passgate.tasks.commands.drift import drift_of, new_falls
from passgate.tasks.commands.trend import trend_of
from tests.builders import a_plan, a_policy
from tests.unit.commands.test_trend_changes import REGRESSION, WHOLE, history


def test_the_run_after_which_a_fall_can_first_be_seen_tells_it_and_later_ones_do_not() -> None:
    found = trend_of(history(REGRESSION), WHOLE)
    (change,) = [one for one in found.changes if one.is_worse]
    (told,) = new_falls(change.told_by, found)
    assert "pass rate" in told
    assert change.tasks[0] in told
    assert new_falls(night_id(59), found) == ()


@pytest.mark.parametrize("alarm", [False, {"drift": False}])
def test_a_gate_that_does_not_ask_reads_no_history(alarm: Any) -> None:
    policy = a_policy(alarm=alarm).model_copy(update={"history": "no-such-kind://anywhere"})
    assert drift_of(a_plan(policy=policy)) == ()
