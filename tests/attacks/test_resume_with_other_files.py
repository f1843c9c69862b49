"""Tries: the files are loosened between a run that was stopped and `--resume`.

Must come: FAIL: the run goes on with the files that it was planned with.
"""

from tests.attacks.conftest import Attacked


def test_resume_with_other_files(attacked: Attacked) -> None:
    attacked.gate()
    (next((attacked.path / ".passgate/runs").glob("*/verdict.json"))).unlink()
    attacked.task("a", 'matches: "."')
    attacked.land()
    outcome = attacked.command("--resume", "last")
    assert outcome.code == 1, outcome.printed
