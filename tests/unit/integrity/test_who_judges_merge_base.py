"""What a change is judged by where the merge base judges: its tasks, policy and prices, and the files they need."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.integrity import base_files
from passgate.tasks.integrity.git import Checkout
from passgate.tasks.integrity.who_judges import who_judges
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.planning.plan import plan_of
from tests.builders import write_task
from tests.repositories import GitRepository
from tests.unit.changes import (
    LOOSE,
    commit_on_main,
    gates,
    is_judged_by_itself,
    loosen,
    of_change,
    planned,
)


def test_the_agent_is_the_one_of_the_change(repository: GitRepository) -> None:
    repository.write("agents.yaml", "agents: {mine: {agent: 'cli:sh old'}}\n")
    commit_on_main(repository)
    loosen(repository)
    repository.write("agents.yaml", "agents: {mine: {agent: 'cli:sh new'}}\n")
    plan = planned(agent="mine")
    assert (plan.base.judged_by, plan.agent.target) == ("base", "sh new")


def test_deleted_tasks_are_still_judged_and_added_ones_not_yet(repository: GitRepository) -> None:
    repository.git("mv", "suites/golden/a.yaml", "suites/golden/z.yaml")
    write_task(repository.path / "suites/golden/z.yaml", task_id="z")
    plan = planned()
    assert [edit.kind for edit in plan.base.edits] == ["deleted", "added"]
    assert [task.task_id for task in plan.tasks] == ["a"]
    assert [task.task_id for task in of_change(plan).tasks] == ["z"]


def test_the_policy_is_that_of_the_merge_base(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates().replace("task_failed", ""))
    plan = planned()
    assert plan.gate_policy.blocks_on == (Rule.TASK_FAILED,)
    assert of_change(plan).gate_policy.blocks_on == ()


def test_quarantine_prices_and_pins_are_those_of_the_merge_base(repository: GitRepository) -> None:
    entry = "{task: a, owner: me, reason: flaky, issue: 'https://host/1', expires: 2020-01-01}"
    repository.write("quarantine.yaml", f"tasks: [{entry}]\n")
    repository.write("prices.yaml", "models: {m: {input: 0, output: 0}}\n")
    repository.write("baseline.yaml", "runs: [one]\nreason: it is good\n")
    plan = planned()
    assert [edit.what for edit in plan.base.edits] == ["baseline pins", "prices", "quarantine"]
    assert (plan.quarantine.tasks, plan.pins) == ((), None)
    change = of_change(plan)
    assert [one.task for one in change.quarantine.tasks] == ["golden/a"]
    assert change.pins is not None


def judging(**request: Any) -> Plan:
    """The plan of who judges, before its models are looked for."""
    with Checkout(Path.cwd()) as checkout:
        return who_judges(plan_of(GateName.CI_MERGE, RunRequest(**request), checkout), checkout).plan


def test_prices_of_models_that_the_merge_base_knows_are_its_own(repository: GitRepository) -> None:
    repository.write("prices.yaml", "models: {old: {input: 5, output: 5}}\n")
    commit_on_main(repository)
    repository.write("prices.yaml", "models: {old: {input: 0, output: 0}, new: {input: 1, output: 1}}\n")
    plan = judging(agent="openai:new", max_cost=1)
    assert [price and price.input for price in map(plan.prices.price_of, ("old", "new"))] == [5, 1]
    assert "the merge base has no price for the model 'new': the one that this change adds counts" in plan.warnings
    assert judging(agent="openai:old", max_cost=1).warnings == ()


def test_the_merge_base_of_a_pinned_commit_is_the_true_one(repository: GitRepository) -> None:
    first = repository.git("rev-parse", "main")
    repository.write("baseline.yaml", f"commit: {first}\nreason: it is good\n")
    pinned = commit_on_main(repository)
    repository.write("gates.yaml", gates(more="curtailment: true"))
    repository.write("baseline.yaml", "commit: main\nreason: look away\n")
    plan = planned()
    assert (plan.base.commit, plan.base.ancestors) == (pinned, (first,))
    assert of_change(plan).base.ancestors == (pinned, first)


def test_secrets_of_either_are_masked(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write("gates.yaml", gates(rest="secrets: [OLD_KEY]\n"))
    commit_on_main(repository)
    repository.write("gates.yaml", gates(rest="secrets: [NEW_KEY]\n"))
    monkeypatch.setenv("NEW_KEY", "hunter2-new")
    monkeypatch.setenv("OLD_KEY", "hunter2-old")
    with pytest.raises(UsageError, match="contains the value of a secret"):
        planned(agent="cli:sh hunter2-old")
    assert set(planned().policy.secrets) == {"OLD_KEY", "NEW_KEY"}


def test_names_are_as_seen_from_a_folder_of_the_repository(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task(repository.path / "agents/evals/golden/b.yaml", task_id="b")
    commit_on_main(repository)
    monkeypatch.chdir(repository.path / "agents")
    write_task(repository.path / "agents/evals/golden/b.yaml", task_id="b", graders=LOOSE)
    plan = planned(suites="evals", gates="../gates.yaml")
    assert plan.base.judged_by == "base"
    assert [edit.path for edit in plan.base.edits] == ["agents/evals/golden/b.yaml"]
    assert [task.file for task in plan.tasks] == ["evals/golden/b.yaml"]


def test_files_of_the_merge_base_stay_out_of_git(repository: GitRepository) -> None:
    loosen(repository)
    planned()
    assert ".passgate" not in repository.git("status", "--porcelain")


def test_an_agent_whose_files_have_moved_is_another_one(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates(more="reuse: {agent_files: ['old/*.py']}"))
    repository.write("old/agent.py")
    commit_on_main(repository)
    unmoved = planned().agent_digest
    repository.git("mv", "old", "new")
    repository.write("gates.yaml", gates(more="reuse: {agent_files: ['new/*.py']}"))
    plan = planned()
    assert plan.base.judged_by == "base"
    assert plan.agent_digest not in {"", unmoved, planned().agent_digest}


EVAL = """\
tests:
  - id: greets
    input: Say ${{ GREETING }}
    criteria: Is kind.
    assert:
      - {type: code_grader, command: [python3, ../../graders/kind.py]}
"""


def test_eval_files_of_the_merge_base_find_its_files_elsewhere_in_the_repository(repository: GitRepository) -> None:
    repository.write(".gitignore", ".env\n.passgate\n")
    repository.write("suites/golden/chat.eval.yaml", EVAL)
    repository.write("graders/kind.py", "old")
    commit_on_main(repository)
    repository.write(".env", "GREETING=hello\n")
    before = planned()
    loosen(repository)
    repository.write("graders/kind.py", "new")
    plan = planned()
    assert plan.base.judged_by == "base"
    assert (plan.tasks, plan.warnings) == (before.tasks, ()), "names, digests and variables are the same"
    assert plan.tasks[1].prompt == "Say hello"
    assert (Path(plan.suites_folder) / "../graders/kind.py").read_text() == "old"
    assert of_change(plan).tasks[1].grader_digest != plan.tasks[1].grader_digest


def test_a_grader_elsewhere_in_the_repository_judges_too(repository: GitRepository) -> None:
    repository.write("suites/golden/chat.eval.yaml", EVAL)
    repository.write("graders/kind.py", "old")
    repository.write("graders/other.py", "old")
    commit_on_main(repository)
    repository.write("graders/other.py", "new")
    assert is_judged_by_itself(planned()), "nothing is graded with that one"
    repository.write("graders/kind.py", "new")
    plan = planned()
    assert [(edit.path, edit.what) for edit in plan.base.edits] == [("graders/kind.py", "tasks and graders")]
    assert plan.base.judged_by == "base"
    assert (Path(plan.suites_folder) / "../graders/kind.py").read_text() == "old"


def test_in_a_repository_that_is_too_large_tasks_do_without_its_other_files(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("suites/golden/chat.eval.yaml", EVAL.replace("../../graders/kind.py", "kind.py"))
    repository.write("suites/golden/kind.py")
    for number in range(5):
        repository.write(f"large/{number}")
    commit_on_main(repository)
    loosen(repository)
    monkeypatch.setattr(base_files, "MOST_FILES", 6)
    plan = planned()
    assert plan.base.judged_by == "base"
    assert not (Path(plan.suites_folder) / "../large").exists()
    monkeypatch.setattr(base_files, "MOST_FILES", 3)
    plan = planned()
    assert is_judged_by_itself(plan)
    assert "cannot judge this change: 4 files with 0 MB" in plan.base.note


def test_variables_that_the_change_commits_do_not_reach_the_tasks_of_the_merge_base(repository: GitRepository) -> None:
    repository.write("suites/golden/chat.eval.yaml", EVAL.replace("../../graders/kind.py", "kind.py"))
    repository.write("suites/golden/kind.py")
    commit_on_main(repository)
    loosen(repository)
    repository.write(".env", "GREETING=hello\n")
    repository.commit()
    plan = planned()
    assert plan.tasks[1].prompt.strip() == "Say"
    assert len(plan.warnings) == 1


def test_links_of_the_merge_base_lead_to_its_files(repository: GitRepository) -> None:
    repository.write("evals/golden/b.yaml")
    write_task(repository.path / "evals/golden/b.yaml", task_id="b")
    (repository.path / "links").symlink_to("evals")
    commit_on_main(repository)
    write_task(repository.path / "evals/golden/b.yaml", task_id="b", graders=LOOSE)
    plan = planned(suites="links")
    assert [edit.path for edit in plan.base.edits] == ["evals/golden/b.yaml"]
    assert plan.base.judged_by == "base"
    assert [task.file for task in plan.tasks] == ["links/golden/b.yaml"]
    write_task(repository.path / "other/golden/b.yaml", task_id="b", graders=LOOSE)
    (repository.path / "links").unlink()
    (repository.path / "links").symlink_to("other")
    again = planned(suites="links")
    assert again.base.judged_by == "base", "a link that leads elsewhere now is an edit too"
    assert again.tasks[0].grader_digest == plan.tasks[0].grader_digest
