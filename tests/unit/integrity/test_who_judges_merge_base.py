"""What a change is judged by where the merge base judges: its tasks, policy and prices, and the files they need."""

from pathlib import Path

import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.integrity import base_checkout
from tests.repositories import GitRepository
from tests.unit.changes import (
    LOOSE,
    change,
    commit_on_main,
    edits_of,
    gates,
    is_judged_by_itself,
    judging_plans,
    loosen,
    of_change,
    planned,
    task_text,
)


def test_quarantine_prices_and_pins_are_those_of_the_merge_base(repository: GitRepository) -> None:
    entry = "{task: a, owner: me, reason: flaky, issue: 'https://host/1', expires: 2020-01-01}"
    files = {
        "quarantine.yaml": f"tasks: [{entry}]\n",
        "prices.yaml": "models: {m: {input: 0, output: 0}}\n",
        "baseline.yaml": "runs: [one]\nreason: it is good\n",
    }
    change(repository, files)
    plan = planned()
    assert [edit.what for edit in plan.base.edits] == ["baseline pins", "prices", "quarantine"]
    assert (plan.quarantine.tasks, plan.pins) == ((), None)
    assert [one.task for one in of_change(plan).quarantine.tasks] == ["golden/a"]
    assert of_change(plan).pins is not None


def test_prices_of_models_that_the_merge_base_knows_are_its_own(repository: GitRepository) -> None:
    repository.write("prices.yaml", "models: {old: {input: 5, output: 5}}\n")
    commit_on_main(repository)
    repository.write("prices.yaml", "models: {old: {input: 0, output: 0}, new: {input: 1, output: 1}}\n")
    plan = judging_plans(agent="openai:new", max_cost=1).plan
    assert [price and price.input for price in map(plan.prices.price, ("old", "new"))] == [5, 1]
    assert (
        "the merge base has no price for the model 'new': passgate uses the one that this change adds" in plan.warnings
    )
    assert judging_plans(agent="openai:old", max_cost=1).plan.warnings == ()


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
    file = "agents/evals/golden/b.yaml"
    repository.write(file, task_text("b"))
    commit_on_main(repository)
    monkeypatch.chdir(repository.path / "agents")
    repository.write(file, task_text("b", graders=LOOSE))
    plan = planned(suites="evals", gates="../gates.yaml")
    assert (plan.base.judged_by, edits_of(plan)) == ("base", [file])
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


HERE = {"suites/golden/chat.eval.yaml": EVAL.replace("../../graders/kind.py", "kind.py"), "suites/golden/kind.py": "x"}


def test_in_a_repository_that_is_too_large_tasks_do_without_its_other_files(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(repository, HERE | {f"large/{number}": "x" for number in range(5)})
    commit_on_main(repository)
    loosen(repository)
    monkeypatch.setattr(base_checkout, "MOST_FILES", 6)
    plan = planned()
    assert plan.base.judged_by == "base"
    assert not (Path(plan.suites_folder) / "../large").exists()
    monkeypatch.setattr(base_checkout, "MOST_FILES", 3)
    plan = planned()
    assert is_judged_by_itself(plan)
    assert "cannot judge this change: 4 files with 0 MB" in plan.base.note


@pytest.mark.parametrize("suites", ["folder", "link"])
def test_variables_that_the_change_commits_do_not_reach_the_tasks_of_the_merge_base(
    repository: GitRepository, suites: str
) -> None:
    change(repository, HERE)
    commit_on_main(repository)
    loosen(repository)
    if suites == "link":
        repository.git("mv", "suites", "mine")
        change(repository, {"suites": Path("mine"), "mine/.env": "GREETING=hello\n"})
    else:
        repository.write(".env", "GREETING=hello\n")
    repository.commit()
    plan = planned()
    assert plan.base.judged_by == "base"
    assert plan.tasks[1].prompt.strip() == "Say"
    assert len(plan.warnings) == 1
