"""Tries: the agent leaves a transcript that is nested 200,000 deep.

Must come: FAIL, and no error.
"""

from tests.attacks.conftest import WORKS, Attacked


def test_agent_with_a_deep_transcript(attacked: Attacked) -> None:
    attacked.agent(WORKS + "head -c 200000 /dev/zero | tr '\\\\0' '[' > $PASSGATE_TRANSCRIPT\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert "the agent left no usable transcript" in outcome.printed
