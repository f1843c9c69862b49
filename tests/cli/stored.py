"""Runs in the history of a project that nobody has run."""

from typing import Any

from passgate.tasks.formats.loading import load_policy, load_tasks
from passgate.tasks.history.columns import trials_table
from passgate.tasks.history.dataset import History
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.run import Revision
from tests.builders import a_plan, begun, trials_of
from tests.project import Project


def store_run(
    project: Project, run_id: str, statuses: str, commit: str, location: str = ".passgate/history", **plan: Any
) -> None:
    """Store a run of the only task by the oracle, on main, whose trials have ended as `trials_of` reads it."""
    (task,) = load_tasks(project.path / "suites", load_policy(project.path / "gates.yaml"))
    plain = {"agent": AgentSpec(kind=AgentKind.ORACLE), "revision": Revision(commit=commit, branch="main")}
    made = a_plan(task, run_id=run_id, created_at=begun(run_id), **(plain | plan))
    table = trials_table(trials_of(task, statuses), made)
    History(str(project.path / location)).write_run(run_id, table, {})
