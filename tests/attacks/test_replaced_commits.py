"""Tries: refs/replace, which a job may fetch with all refs, put the change's files into the target branch's commit.

Must come: FAIL: git is asked for what was committed.
"""

from tests.attacks.conftest import Attacked


def test_replaced_commits(attacked: Attacked) -> None:
    attacked.task("a", 'matches: "."')
    own = attacked.commit("Loosen")
    attacked.git("replace", attacked.git("rev-parse", "main"), own)
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
