"""Tries: the agent prints without end.

Must come: FAIL: passgate ends it.
"""

from tests.attacks.conftest import Attacked


def test_agent_that_writes_no_end(attacked: Attacked) -> None:
    attacked.agent("yes\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert "printed too much" in outcome.printed
