"""Tries: a line in the middle of a run's journal is no trial.

Must come: INCONCLUSIVE with the line: a damaged record gives no verdict.
"""

from tests.attacks.conftest import Attacked


def test_poisoned_journal(attacked: Attacked) -> None:
    attacked.gate()
    run = next((attacked.path / ".passgate/runs").glob("*/verdict.json")).parent
    (run / "verdict.json").unlink()
    journal = run / "journal.jsonl"
    journal.write_text("garbage\n" + journal.read_text())
    outcome = attacked.command("--resume", "last")
    assert outcome.code == 3, outcome.printed
    assert not (run / "verdict.json").exists()
