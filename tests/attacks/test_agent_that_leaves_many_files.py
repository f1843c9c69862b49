"""Tries: the agent leaves 50,000 files, a file of a terabyte without content, and files with set-user-ID bits.

Must come: FAIL, and nothing is left behind.
"""

from tests.attacks.conftest import BROKEN, Attacked


def test_agent_that_leaves_many_files(attacked: Attacked) -> None:
    attacked.agent(
        BROKEN
        + "mkdir -p many; cd many; seq 1 50000 | xargs touch; cd ..\n"
        + "truncate -s 1T large || true; cp /bin/sh shell; chmod 6777 shell\n"
    )
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert not list(attacked.path.rglob("large"))
    assert not list(attacked.path.rglob("shell"))
