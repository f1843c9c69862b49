"""Tries: the change brings its own history.

Must come: Exit code 2 with the commands that take it out of git.
"""

from tests.attacks.conftest import Attacked


def test_history_that_comes_with_the_change(attacked: Attacked) -> None:
    attacked.write(".passgate/history/trials/x.parquet", "x")
    attacked.git("add", "--force", ".passgate")
    attacked.git("commit", "-qm", "A history")
    outcome = attacked.gate()
    assert outcome.code == 2, outcome.printed
    assert "must not be in git" in outcome.printed
