"""Tries: the change sets another model for the agent.

Must come: The change's agent runs, since that is what the gate measures, and a note names the difference.
"""

from tests.attacks.conftest import WORKS, Attacked


def test_other_model(attacked: Attacked) -> None:
    attacked.agent(WORKS)
    attacked.write("agents.yaml", f"agents: {{desk: {{agent: 'cli:sh {attacked.path}/agent.sh', model: cheaper}}}}\n")
    attacked.commit("Another model")
    outcome = attacked.gate()
    assert outcome.code == 0, outcome.printed
    assert "the agent 'desk' is run as this change defines it: its model differs" in outcome.verdict["notes"]
