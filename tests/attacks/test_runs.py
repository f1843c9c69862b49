"""Attacks on what runs leave behind: the history, the journal, and the run that goes on."""

from pathlib import Path

from tests.attacks.conftest import BROKEN, GATES, LAX, Attacked


def run_of(attacked: Attacked) -> Path:
    """The folder of a run that the agent has failed, without its verdict."""
    attacked.gate(1)
    (verdict,) = (attacked.path / ".passgate/runs").glob("*/verdict.json")
    verdict.unlink()
    return verdict.parent


def test_history_behind_a_link(attacked: Attacked) -> None:
    (attacked.path / ".passgate").symlink_to("results")
    attacked.change({"results/history/trials/x.parquet": "x"})
    assert "must not be in git" in attacked.gate(2).printed


def test_history_that_comes_with_the_change(attacked: Attacked) -> None:
    attacked.put({".passgate/history/trials/x.parquet": "x"})
    attacked.git("add", "--force", ".passgate")
    attacked.git("commit", "-qm", "A history")
    assert "must not be in git" in attacked.gate(2).printed


def test_poisoned_journal(attacked: Attacked) -> None:
    journal = run_of(attacked) / "journal.jsonl"
    journal.write_text("garbage\n" + journal.read_text())
    assert attacked.command(3, "--resume", "last").verdict == {}


def test_resume_with_other_files(attacked: Attacked) -> None:
    run_of(attacked)
    attacked.land(LAX)
    attacked.command(1, "--resume", "last")


def test_resume_with_another_agent(attacked: Attacked) -> None:
    attacked.gate(1)
    assert "--base change: the run has" in attacked.command(2, "--resume", "last", "--base", "change").printed


def test_run_that_comes_with_the_change(attacked: Attacked) -> None:
    attacked.gate(1)
    attacked.git("add", "--force", ".passgate/runs")
    attacked.git("commit", "-qm", "A run")
    assert "must not be in git" in attacked.command(2, "--resume", "last").printed


def test_reuse_of_what_another_agent_did(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.land({"gates.yaml": GATES + "    reuse: {agent_files: [agent.sh]}\n"})
    attacked.gate(0)
    attacked.branch("broken")
    attacked.agent(BROKEN)
    attacked.gate(1)
