"""Tries: the change has no commit in common with the target branch.

Must come: FAIL by the tip of the target branch; in CI nothing is run.
"""

from tests.attacks.conftest import Attacked


def test_orphan_branch(attacked: Attacked) -> None:
    attacked.git("checkout", "--quiet", "--orphan", "alone")
    attacked.task("a", 'matches: "."')
    attacked.commit("Alone")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert any("have no commit in common" in note for note in outcome.verdict["notes"])
    in_ci = attacked.gate(CI="true")
    assert in_ci.code == 3
    assert "so nothing was run" in in_ci.printed
