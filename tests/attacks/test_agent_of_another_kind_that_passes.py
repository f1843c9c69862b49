"""Tries: the change makes the agent one of another kind, and the target branch's passes.

Must come: INCONCLUSIVE until a person signs off: the gate has not measured the change's agent.
"""

import pytest

from passgate.tasks.commands.sign_off import sign_off
from passgate.tasks.model.verdict import Decision
from tests.attacks.conftest import WORKS, Attacked


def test_agent_of_another_kind_that_passes(attacked: Attacked, monkeypatch: pytest.MonkeyPatch) -> None:
    attacked.agent(WORKS)
    attacked.write("agents.yaml", "agents: {desk: {agent: 'python:mine:answer'}}\n")
    attacked.commit("Native")
    outcome = attacked.gate()
    assert (outcome.code, outcome.verdict["awaiting_sign_off"]) == (3, True), outcome.printed
    monkeypatch.chdir(attacked.path)
    signed = sign_off(outcome.verdict["run_id"], by="Ann", decision="approve", reason="The port is right.")
    assert signed.decision is Decision.PASS
