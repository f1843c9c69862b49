"""Tries: the agent prints to its error output without end.

Must come: FAIL: passgate ends it.
"""

from tests.attacks.conftest import WORKS, Attacked


def test_agent_that_floods_its_error_output(attacked: Attacked) -> None:
    attacked.agent(WORKS + "exec yes 'a line of the error output' >&2\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert len(outcome.printed) < 20_000
