"""A small gate on main, changes of it, and the plans that are made for them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.who_judges import JudgingPlans, who_judges
from passgate.tasks.load import load
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.planning.plan import new_plan
from tests.builders import task_document, write_task
from tests.repositories import GitRepository

GATES = """\
suites:
  golden: {{k: 2, metric: pass^k, max_steps: 20}}
  adversarial: {{k: 2, metric: pass^k, max_steps: 20}}
gates:
  ci_merge: {{suites: [{suites}], blocks_on: [task_failed], {more}}}
"""

LOOSE = [{"type": "output_check", "contains": ["y"]}]


def gates(suites: str = "golden", more: str = "", rest: str = "") -> str:
    return GATES.format(suites=suites, more=more) + rest


def gate_on_main(folder: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    """A gate with one task on main; the branch `change` is checked out, and the repository is the working folder."""
    _clear_environment(monkeypatch)
    made = GitRepository(folder)
    monkeypatch.chdir(made.path)
    made.write("gates.yaml", gates())
    write_task(made.path / "suites/golden/a.yaml", task_id="a")
    made.commit("The gate")
    made.branch("change")
    return made


def commit_on_main(repository: GitRepository) -> str:
    """Commit what is in the working folder as if main had had it before the change; the commit."""
    commit = repository.commit()
    repository.git("branch", "--force", "main")
    return commit


def _clear_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take out what says where a run is, which keys it has and what git it asks."""
    for name in list(os.environ):
        if name.startswith(("PASSGATE_", "OPENAI_", "GITHUB_", "CI_", "BUILDKITE", "GIT_")) or name == "CHANGE_TARGET":
            monkeypatch.delenv(name)


def loosen(repository: GitRepository) -> None:
    repository.write("suites/golden/a.yaml", task_text(graders=LOOSE))


def task_text(task_id: str = "a", **fields: Any) -> str:
    """The text of a task file."""
    return yaml.safe_dump(task_document(task_id=task_id, **fields))


def change(repository: GitRepository, files: Mapping[str, str | Path | None]) -> None:
    """Write texts, make links where there is a path, and delete where there is nothing."""
    for name, content in files.items():
        file = repository.path / name
        if file.exists() or file.is_symlink():
            file.unlink()
        if isinstance(content, Path):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.symlink_to(content)
        elif content is not None:
            repository.write(name, content)


def edits_of(plan: Plan) -> list[str]:
    """Which files the change edits of those that judge it."""
    return [edit.path for edit in plan.base.edits]


def planned(**request: Any) -> Plan:
    return load(GateName.CI_MERGE, RunRequest(**request))


def judging_plans(**request: Any) -> JudgingPlans:
    """The plans of who judges, before anything is looked for outside of the files."""
    with Checkout(Path.cwd()) as checkout:
        return who_judges(new_plan(GateName.CI_MERGE, RunRequest(**request), checkout), checkout)


def of_change(plan: Plan) -> Plan:
    return RunStore.of(plan.run_id).change.read_plan()


def is_judged_by_itself(plan: Plan) -> bool:
    """And nothing of the merge base has been left behind."""
    names = {entry.name for entry in RunStore.of(plan.run_id).here.iterdir()}
    return plan.base.judged_by == "change" and names == {"plan.json"}
