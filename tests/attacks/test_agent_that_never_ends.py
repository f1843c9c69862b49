"""Tries: the agent runs for ever and ignores signals.

Must come: FAIL at the deadline.
"""

from tests.attacks.conftest import GATES, Attacked


def test_agent_that_never_ends(attacked: Attacked) -> None:
    attacked.write("gates.yaml", GATES.replace("max_seconds: 300", "max_seconds: 1"))
    attacked.land()
    attacked.agent("trap '' TERM INT HUP; printf ok > a.txt; while :; do sleep 1; done\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
