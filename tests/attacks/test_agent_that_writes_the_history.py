"""Tries: the agent writes rows of its own into the history.

Must come: FAIL, and nothing of it is there.
"""

from tests.attacks.conftest import Attacked


def test_agent_that_writes_the_history(isolated: Attacked) -> None:
    isolated.agent(f"printf bad > a.txt; cd {isolated.path}/.passgate; mkdir history; echo x > history/mine; exit 0\n")
    outcome = isolated.gate()
    assert outcome.code == 1, outcome.printed
    assert not (isolated.path / ".passgate/history/mine").exists()
