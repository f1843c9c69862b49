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
    assert outcome.edits == ["agents.yaml", "recorded/a.json"]
    assert "kind (cli at the merge base, replay here)" in outcome.printed
