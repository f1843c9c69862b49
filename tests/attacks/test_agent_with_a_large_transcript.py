"""Tries: the agent leaves a transcript of 1 TB.

Must come: FAIL, and no error: nobody reads it.
"""

from tests.attacks.conftest import WORKS, Attacked


def test_agent_with_a_large_transcript(attacked: Attacked) -> None:
    attacked.agent(WORKS + "truncate -s 900M $PASSGATE_TRANSCRIPT\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert "larger than 32 MiB" in outcome.printed
