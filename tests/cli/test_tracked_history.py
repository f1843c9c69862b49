"""A history, or runs, that a change brings with it: refused by every command that reads them."""

from pathlib import Path

import pytest

from tests.builders import a_run_id
from tests.cli.commands import Here, refused
from tests.cli.stored import store_run
from tests.gates import gate_of

RUN = a_run_id("20260130")
REMEDY = "a line in .gitignore and a commit"


@pytest.fixture
def gated(here: Here) -> Here:
    gate_of(here, "a")
    return here


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
def test_no_command_reads_a_history_that_git_tracks(gated: Here, command: tuple[str, ...]) -> None:
    bring_history(gated, "kept/history")
    said = refused(gated, *command, "--history", "kept/history")
    assert "the history kept/history must not be in git, but git tracks kept/history/" in said
    assert f"`git rm -r --cached kept/history`, {REMEDY}" in said


def test_the_history_that_the_policy_names_is_no_other(gated: Here) -> None:
    bring_history(gated, "kept")
    gated.write("gates.yaml", (gated.path / "gates.yaml").read_text() + "history: kept\n")
    assert "the history kept must not be in git" in refused(gated, "run", "ci_merge")


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
def test_no_command_goes_on_with_runs_that_git_tracks(gated: Here, command: tuple[str, ...]) -> None:
    gated.write(f".passgate/runs/{RUN}/plan.json", "{}")
    gated.git("add", "--all", "--force")
    said = refused(gated, *command)
    assert f"passgate's folder .passgate must not be in git, but git tracks .passgate/runs/{RUN}/plan.json" in said
    assert f"`git rm -r --cached .passgate`, {REMEDY}" in said


def test_a_link_in_place_of_the_folder_is_refused(gated: Here, tmp_path: Path) -> None:
    (gated.path / ".passgate").symlink_to(tmp_path)
    gated.git("add", "--all")
    assert "git tracks the link .passgate" in refused(gated, "run", "ci_merge")
