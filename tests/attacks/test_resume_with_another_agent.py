"""Tries: a run is resumed with another agent than it was begun with.

Must come: Exit code 2: the options are those of the run.
"""

from tests.attacks.conftest import Attacked


def test_resume_with_another_agent(attacked: Attacked) -> None:
    attacked.gate()
    outcome = attacked.command("--resume", "last", "--base", "change")
    assert outcome.code == 2, outcome.printed
    assert "--base change: the run has" in outcome.printed
