"""Tries: the agent makes its result a link to a file of the machine that says what is wanted.

Must come: FAIL: links out of the workspace are not followed.
"""

from tests.attacks.conftest import Attacked


def test_link_to_what_is_wanted(attacked: Attacked) -> None:
    attacked.task("a", "exists: true")
    attacked.land()
    attacked.agent("ln -s /usr/bin/env a.txt\n")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
