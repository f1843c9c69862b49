"""Tries: the change takes the rule that its agent breaks out of the policy.

Must come: FAIL by the policy of the target branch.
"""

from tests.attacks.conftest import GATES, Attacked


def test_policy_that_blocks_nothing(attacked: Attacked) -> None:
    attacked.write("gates.yaml", GATES.replace(", golden_regression, task_failed", ""))
    attacked.commit("Block less")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["gates.yaml"]
