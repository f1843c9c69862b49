"""Tries: the agent works in the first trial alone, which looks like the one of a demonstration.

Must come: FAIL: every trial counts.
"""

from tests.attacks.conftest import GATES, Attacked


def test_agent_that_detects_trial_numbers(attacked: Attacked) -> None:
    attacked.write("gates.yaml", GATES.replace("k: 1", "k: 3"))
    attacked.land()
    attacked.agent('[ "$PASSGATE_TRIAL" != 0 ] || printf ok > a.txt; exit 0\n')
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
