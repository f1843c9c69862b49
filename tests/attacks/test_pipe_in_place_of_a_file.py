"""Tries: the agent leaves a pipe, which whoever opens it waits for.

Must come: FAIL, without waiting.
"""

from tests.attacks.conftest import Attacked


def test_pipe_in_place_of_a_file(attacked: Attacked) -> None:
    attacked.agent("mkfifo a.txt\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
