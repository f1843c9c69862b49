"""Tries: the name of the target branch is an option of git.

Must come: INCONCLUSIVE in CI, and git is given no such option.
"""

from tests.attacks.conftest import Attacked


def test_target_that_is_an_option(attacked: Attacked) -> None:
    outcome = attacked.gate(CI="true", GITHUB_BASE_REF="--output=written")
    assert outcome.code == 3, outcome.printed
    assert outcome.verdict == {}, "nothing was run"
    assert "the target of this change, is missing here" in outcome.printed
