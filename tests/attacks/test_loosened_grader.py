"""Tries: the change loosens the grader that its broken agent would fail.

Must come: FAIL by the grader of the target branch, also in CI; the report says what the change's own would have said.
"""

from tests.attacks.conftest import Attacked


def test_loosened_grader(attacked: Attacked) -> None:
    attacked.task("a", 'matches: "."')
    attacked.commit("Loosen")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["suites/golden/a.yaml"]
    assert outcome.verdict["integrity"]["change"]["decision"] == "PASS"
