"""Tries: the change makes the agent one that replays what should have been done.

Must come: FAIL of the target branch's agent; the change of kind is named.
"""

from tests.attacks.conftest import Attacked


def test_agent_that_is_a_recording(attacked: Attacked) -> None:
    attacked.write("recorded/a.json", '{"messages": [{"role": "assistant", "content": "done"}], "output": "done"}')
    attacked.write("agents.yaml", "agents: {desk: {agent: 'replay:recorded'}}\n")
    attacked.commit("Replay")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert "kind (cli at" in outcome.printed
