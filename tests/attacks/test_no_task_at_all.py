"""Tries: the change deletes the suites.

Must come: Exit code 2: without a task nothing passes.
"""

from tests.attacks.conftest import Attacked


def test_no_task_at_all(attacked: Attacked) -> None:
    attacked.git("rm", "-rqf", "suites")
    attacked.commit("Nothing")
    outcome = attacked.gate()
    assert outcome.code == 2, outcome.printed
    assert "suites" in outcome.printed
