"""Tries: the policy reuses trials, and the change breaks the agent in a file that the policy names.

Must come: FAIL: the agent's files are another, so nothing is reused.
"""

from tests.attacks.conftest import BROKEN, GATES, Attacked


def test_reuse_of_what_another_agent_did(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.write("gates.yaml", GATES + "    reuse: {agent_files: [agent.sh]}\n")
    attacked.land()
    assert attacked.gate().code == 0
    attacked.branch("broken")
    attacked.agent(BROKEN)
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
