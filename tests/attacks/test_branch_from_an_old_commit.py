"""Tries: the change begins at a commit whose grader was lax, and edits nothing that judges.

Must come: FAIL by the grader at the tip of the target branch.
"""

from tests.attacks.conftest import BROKEN, Attacked


def test_branch_from_an_old_commit(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.task("a", 'matches: "."')
    attacked.land()
    attacked.branch("old")
    attacked.agent(BROKEN)
    attacked.checkout("main")
    attacked.task("a")
    attacked.land()
    attacked.checkout("old")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == []
    assert any("newer on the target branch" in note for note in outcome.verdict["notes"])
