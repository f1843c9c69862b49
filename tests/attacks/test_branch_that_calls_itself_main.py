"""Tries: a fork's branch is called main, and the job has checked it out under this name.

Must come: INCONCLUSIVE in CI: the remote's branch is missing.
"""

from tests.attacks.conftest import Attacked


def test_branch_that_calls_itself_main(attacked: Attacked) -> None:
    attacked.task("a", 'matches: "."')
    attacked.commit("Loosen")
    attacked.git("branch", "--force", "main", "change")
    attacked.checkout("main")
    attacked.git("update-ref", "-d", "refs/remotes/origin/main")
    outcome = attacked.gate(CI="true")
    assert outcome.code == 3, outcome.printed
    assert outcome.verdict == {}, "nothing was run"
    assert "git fetch origin +refs/heads/main" in outcome.printed
