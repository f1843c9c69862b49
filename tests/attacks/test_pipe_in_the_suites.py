"""Tries: an uncommitted pipe lies among the tasks, which whoever opens it waits for.

Must come: exit code 2 or FAIL, without waiting.
"""

import os

from tests.attacks.conftest import Attacked


def test_pipe_in_the_suites(attacked: Attacked) -> None:
    os.mkfifo(attacked.path / "suites/golden/b.yaml")
    outcome = attacked.gate()
    assert outcome.code in {1, 2}, outcome.printed
