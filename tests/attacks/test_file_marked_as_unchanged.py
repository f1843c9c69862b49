"""Tries: an earlier step tells git to take the task as unchanged, and loosens it in the working folder.

Must come: FAIL by the task of the target branch: such a file is an edit.
"""

from tests.attacks.conftest import Attacked


def test_file_marked_as_unchanged(attacked: Attacked) -> None:
    attacked.git("update-index", "--assume-unchanged", "suites/golden/a.yaml")
    attacked.task("a", 'matches: "."')
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["suites/golden/a.yaml"]
