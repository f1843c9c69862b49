"""Tries: the change says `integrity: off` in its gates file and loosens a grader.

Must come: FAIL: only the target branch's file can say so.
"""

from tests.attacks.conftest import GATES, Attacked


def test_integrity_switched_off(attacked: Attacked) -> None:
    attacked.write("gates.yaml", GATES + "    integrity: off\n")
    attacked.task("a", 'matches: "."')
    attacked.commit("Judge myself")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
