"""Tries: the change names itself as the branch that it goes into.

Must come: FAIL: the target branch's own gates file names it.
"""

from tests.attacks.conftest import GATES, Attacked


def test_baseline_branch_of_the_change(attacked: Attacked) -> None:
    attacked.write("gates.yaml", GATES + "baseline: {branch: change}\n")
    attacked.task("a", 'matches: "."')
    attacked.commit("Into myself")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
