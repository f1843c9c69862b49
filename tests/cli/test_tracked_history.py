"""A history, or runs, that a change brings with it: refused by every command that reads them."""

import pytest

from tests.builders import a_run_id
from tests.cli.commands import Here, refused
from tests.cli.stored import store_run

RUN = a_run_id("20260130")
REMEDY = "a line in .gitignore and a commit"


def bring_history(project: Here, location: str) -> None:
    """Commit a history in which the task has failed before too."""
    store_run(project, RUN, "fff", project.git("rev-parse", "HEAD"), location)
    project.git("add", "--all", "--force")
    project.git("commit", "-q", "-m", "A better baseline")


@pytest.mark.parametrize(
    "command",
    [
        ("run", "ci_merge"),
        ("forecast", "ci_merge"),
        ("burn-in", "ci_merge", "--runs", "2"),
        ("trend",),
        ("baseline", "show"),
        ("baseline", "pin", "--run", RUN, "--reason", "It is better."),
    ],
    ids=" ".join,
)
def test_no_command_reads_a_history_that_git_tracks(gate_here: Here, command: tuple[str, ...]) -> None:
    bring_history(gate_here, "kept/history")
    said = refused(gate_here, *command, "--history", "kept/history")
    assert "the history kept/history must not be in git, but git tracks kept/history/" in said
    assert f"`git rm -r --cached kept/history`, {REMEDY}" in said


def test_the_history_that_the_policy_names_is_no_other(gate_here: Here) -> None:
    bring_history(gate_here, "kept")
    gate_here.write("gates.yaml", (gate_here.path / "gates.yaml").read_text() + "history: kept\n")
    assert "the history kept must not be in git" in refused(gate_here, "run", "ci_merge")


@pytest.mark.parametrize(
    "command",
    [
        ("run", "ci_merge"),
        ("run", "ci_merge", "--resume", "last"),
        ("judge", "last"),
        ("sign-off", "last", "--by", "Eve", "--decision", "approve", "--reason", "Mine."),
    ],
    ids=" ".join,
)
def test_no_command_goes_on_with_runs_that_git_tracks(gate_here: Here, command: tuple[str, ...]) -> None:
    gate_here.write(f".passgate/runs/{RUN}/plan.json", "{}")
    gate_here.git("add", "--all", "--force")
    said = refused(gate_here, *command)
    assert f"passgate's folder .passgate must not be in git, but git tracks .passgate/runs/{RUN}/plan.json" in said
    assert f"`git rm -r --cached .passgate`, {REMEDY}" in said
