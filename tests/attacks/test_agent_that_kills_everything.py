"""Tries: the agent kills every process that it may.

Must come: FAIL of the agent, not an error of passgate.
"""

from tests.attacks.conftest import Attacked


def test_agent_that_kills_everything(isolated: Attacked) -> None:
    isolated.agent("printf bad > a.txt; grep -q bwrap /proc/1/comm && kill -9 -1; exit 0\n")
    outcome = isolated.gate()
    assert outcome.code == 1, outcome.printed
