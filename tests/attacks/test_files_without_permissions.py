"""Tries: the agent takes all permissions from what it leaves.

Must come: FAIL, and no error; nothing is left behind.
"""

from tests.attacks.conftest import Attacked


def test_files_without_permissions(attacked: Attacked) -> None:
    attacked.agent("printf bad > a.txt; mkdir deep; chmod 0 a.txt deep .; exit 0\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
