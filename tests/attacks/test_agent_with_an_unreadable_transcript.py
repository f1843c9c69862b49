"""Tries: the agent leaves a transcript that is none and exits 0, so that nobody can measure it.

Must come: FAIL, and no error: it chose not to be measured.
"""

from tests.attacks.conftest import WORKS, Attacked


def test_agent_with_an_unreadable_transcript(attacked: Attacked) -> None:
    attacked.agent(WORKS + "echo garbage > $PASSGATE_TRANSCRIPT\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert "the agent left no usable transcript" in outcome.printed
