"""Tries: the name of the target branch is an expression that means an older commit.

Must come: INCONCLUSIVE in CI: only a branch of this very name is one.
"""

from tests.attacks.conftest import Attacked


def test_target_that_is_an_expression(attacked: Attacked) -> None:
    outcome = attacked.gate(CI="true", GITHUB_BASE_REF="main~1")
    assert outcome.code == 3, outcome.printed
    assert outcome.verdict == {}, "nothing was run"
    assert "the target of this change, is missing here" in outcome.printed
