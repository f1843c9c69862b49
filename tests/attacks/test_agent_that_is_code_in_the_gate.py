"""Tries: the change makes the agent Python code that takes over the gate when it is loaded.

Must come: FAIL: the code is not even loaded.
"""

from tests.attacks.conftest import Attacked


def test_agent_that_is_code_in_the_gate(attacked: Attacked) -> None:
    attacked.write("taking.py", "open('loaded', 'w')\n\ndef answer(attempt):\n    return 'done'\n")
    attacked.write("agents.yaml", "agents: {desk: {agent: 'python:taking:answer'}}\n")
    attacked.commit("Native")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert not (attacked.path / "loaded").exists()
