"""Tries: a loosened grader lies in the working folder and in no commit.

Must come: FAIL: what is not committed is an edit too.
"""

from tests.attacks.conftest import Attacked


def test_uncommitted_grader(attacked: Attacked) -> None:
    attacked.task("a", 'matches: "."')
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["suites/golden/a.yaml"]
