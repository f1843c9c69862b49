"""Tries: the change deletes the task that its agent fails and brings an easy one.

Must come: FAIL on the deleted task.
"""

from tests.attacks.conftest import Attacked


def test_deleted_task(attacked: Attacked) -> None:
    (attacked.path / "suites/golden/a.yaml").unlink()
    attacked.task("easy", "exists: false")
    attacked.commit("Swap tasks")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["suites/golden/a.yaml", "suites/golden/easy.yaml"]
