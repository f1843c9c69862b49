"""Tries: the change puts the task that its agent fails into quarantine.

Must come: FAIL: the quarantine is that of the target branch.
"""

from datetime import UTC, datetime, timedelta

from tests.attacks.conftest import Attacked


def test_quarantined_by_the_change(attacked: Attacked) -> None:
    soon = (datetime.now(UTC) + timedelta(days=5)).date()
    entry = f"{{task: golden/a, owner: me, reason: It is flaky., issue: https://desk.example/1, expires: {soon}}}"
    attacked.write("quarantine.yaml", f"version: 1\ntasks: [{entry}]\n")
    attacked.commit("Quarantine")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["quarantine.yaml"]
