"""Tries: the agent leaves a small file whose parts take all memory when they are read.

Must come: FAIL, and no error: they are counted before they are read.
"""

from tests.attacks.conftest import WORKS, Attacked


def test_agent_with_a_transcript_of_millions_of_parts(attacked: Attacked) -> None:
    attacked.agent(WORKS + "yes '{},' | head -c 30000000 > $PASSGATE_TRANSCRIPT\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert "more than 500000 lists and objects" in outcome.printed
