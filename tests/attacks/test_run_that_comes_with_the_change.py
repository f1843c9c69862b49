"""Tries: the change brings a run that is to be resumed.

Must come: Exit code 2: runs that git tracks are refused.
"""

from tests.attacks.conftest import Attacked


def test_run_that_comes_with_the_change(attacked: Attacked) -> None:
    attacked.gate()
    attacked.git("add", "--force", ".passgate/runs")
    attacked.git("commit", "-qm", "A run")
    outcome = attacked.command("--resume", "last")
    assert outcome.code == 2, outcome.printed
    assert "must not be in git" in outcome.printed
