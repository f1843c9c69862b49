"""A history, or runs, that a change brings with it: refused by every command that reads them."""

from pathlib import Path

import pytest

from passgate.tasks.formats.loading import load_policy, load_tasks
from passgate.tasks.history.columns import rows, table_of
from passgate.tasks.history.dataset import History
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.run import Revision
from tests.builders import a_plan, a_run_id, begun, trials_of
from tests.gates import GATES, WRITES_OK
from tests.project import Project

pytestmark = pytest.mark.slow

RUN = a_run_id("20260130")
REMEDY = "a line in .gitignore and a commit"


@pytest.fixture
def gated(bare_project: Project) -> Project:
    bare_project.write("gates.yaml", GATES.format(k=3, seconds=30, suites="golden"))
    bare_project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    return bare_project


def bring_history(project: Project, location: str) -> None:
    """Commit a history in which the task has failed before too."""
    (task,) = load_tasks(project.path / "suites", load_policy(project.path / "gates.yaml"))
    plan = a_plan(
        task,
        run_id=RUN,
        created_at=begun(RUN),
        agent=AgentSpec(kind=AgentKind.ORACLE),
        revision=Revision(commit=project.git("rev-parse", "HEAD"), branch="main"),
    )
    History(str(project.path / location)).write_run(RUN, "2026-01-30", table_of(rows(trials_of(task, "fff"), plan)), {})
    project.git("add", "--all", "--force")
    project.git("commit", "-q", "-m", "A better baseline")


def refusal(project: Project, *arguments: str) -> str:
    result = project.passgate(*arguments)
    assert result.returncode == 2, result.stdout + result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


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
def test_no_command_reads_a_history_that_git_tracks(gated: Project, command: tuple[str, ...]) -> None:
    bring_history(gated, "kept/history")
    said = refusal(gated, *command, "--history", "kept/history")
    assert "the history kept/history must not be in git, but git tracks kept/history/" in said
    assert f"`git rm -r --cached kept/history`, {REMEDY}" in said


def test_the_history_that_the_policy_names_is_no_other(gated: Project) -> None:
    bring_history(gated, "kept")
    gated.write("gates.yaml", (gated.path / "gates.yaml").read_text() + "history: kept\n")
    assert "the history kept must not be in git" in refusal(gated, "run", "ci_merge")


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
def test_no_command_goes_on_with_runs_that_git_tracks(gated: Project, command: tuple[str, ...]) -> None:
    gated.write(f".passgate/runs/{RUN}/plan.json", "{}")
    gated.git("add", "--all", "--force")
    said = refusal(gated, *command)
    assert f"passgate's folder .passgate must not be in git, but git tracks .passgate/runs/{RUN}/plan.json" in said
    assert f"`git rm -r --cached .passgate`, {REMEDY}" in said


def test_a_link_in_place_of_the_folder_is_refused(gated: Project, tmp_path: Path) -> None:
    (gated.path / ".passgate").symlink_to(tmp_path)
    gated.git("add", "--all")
    assert "git tracks the link .passgate" in refusal(gated, "run", "ci_merge")
