"""Who judges a change: the files of the merge base where it edits them, else its own."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.builders import write_task
from tests.repositories import GitRepository

from passgate.tasks.errors import InputError, StorageError, UsageError
from passgate.tasks.history import base_files
from passgate.tasks.history.run_folder import RunFolder
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.prepare import prepare

GATES = """\
suites:
  golden: {{k: 2, metric: pass^k, max_steps: 20}}
  adversarial: {{k: 2, metric: pass^k, max_steps: 20}}
gates:
  ci_merge: {{suites: [{suites}], blocks_on: [task_failed], {more}}}
"""


def gates(suites: str = "golden", more: str = "", rest: str = "") -> str:
    return GATES.format(suites=suites, more=more) + rest


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("PASSGATE_", "OPENAI_", "GITHUB_", "CI_", "BUILDKITE", "GIT_")) or name == "CHANGE_TARGET":
            monkeypatch.delenv(name)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    """A gate with one task on main; the branch `change` is checked out, and the repository is the working folder."""
    made = GitRepository(tmp_path / "repository")
    monkeypatch.chdir(made.path)
    made.write("gates.yaml", gates())
    write_task(made.path / "suites/golden/a.yaml", task_id="a")
    made.commit("The gate")
    made.branch("change")
    return made


LOOSE = [{"type": "output_check", "contains": ["y"]}]


def loosen(repository: GitRepository) -> None:
    write_task(repository.path / "suites/golden/a.yaml", task_id="a", graders=LOOSE)


def planned(**request: Any) -> Plan:
    return prepare(GateName.CI_MERGE, RunRequest(**request))


def of_change(plan: Plan) -> Plan:
    return RunFolder(plan.run_id).change.read_plan()


def is_judged_by_itself(plan: Plan) -> bool:
    """And nothing of the merge base has been left behind."""
    names = {entry.name for entry in RunFolder(plan.run_id).path.iterdir()}
    return plan.base.judged_by == "change" and names == {"plan.json"}


def test_a_change_of_the_agent_alone_is_judged_by_the_files_that_are_there(repository: GitRepository) -> None:
    repository.write("agent.py")
    repository.commit()
    plan = planned()
    assert (plan.base.commit, plan.base.edits, plan.base.note) == (repository.git("rev-parse", "main"), (), "")
    assert is_judged_by_itself(plan)


@pytest.mark.parametrize("committed", [True, False])
def test_a_change_of_a_grader_is_judged_by_the_merge_base(repository: GitRepository, committed: bool) -> None:
    own = planned()
    loosen(repository)
    if committed:
        repository.commit()
    plan = planned()
    assert plan.base.judged_by == "base"
    assert [(edit.path, edit.kind, edit.what) for edit in plan.base.edits] == [
        ("suites/golden/a.yaml", "changed", "tasks and graders")
    ]
    assert plan.tasks == own.tasks, "digests, places and all"
    change = of_change(plan)
    assert change.tasks[0].grader_digest != plan.tasks[0].grader_digest
    assert (change.run_id, change.base.judged_by, change.base.edits) == (f"{plan.run_id}/change", "change", ())
    assert (Path(plan.suites_folder) / "golden/a.yaml").is_file()
    assert Path(change.suites_folder) == repository.path / "suites"
    assert plan.request == change.request == RunRequest()


def test_the_agent_is_the_one_of_the_change(repository: GitRepository) -> None:
    repository.write("agents.yaml", "agents: {mine: {agent: 'cli:sh old'}}\n")
    repository.commit()
    repository.git("branch", "--force", "main")
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


def test_prices_of_models_that_the_merge_base_knows_are_its_own(repository: GitRepository) -> None:
    repository.write("prices.yaml", "models: {old: {input: 5, output: 5}}\n")
    repository.commit()
    repository.git("branch", "--force", "main")
    repository.write("prices.yaml", "models: {old: {input: 0, output: 0}, new: {input: 1, output: 1}}\n")
    plan = planned(agent="openai:new", max_cost=1)
    assert [price and price.input for price in map(plan.prices.price_of, ("old", "new"))] == [5, 1]
    assert "the merge base has no price for the model 'new': the one that this change adds counts" in plan.warnings
    assert planned(agent="openai:old", max_cost=1).warnings == ()


def test_the_merge_base_of_a_pinned_commit_is_the_true_one(repository: GitRepository) -> None:
    first = repository.git("rev-parse", "main")
    repository.write("baseline.yaml", f"commit: {first}\nreason: it is good\n")
    pinned = repository.commit()
    repository.git("branch", "--force", "main")
    repository.write("gates.yaml", gates(more="curtailment: true"))
    repository.write("baseline.yaml", "commit: main\nreason: look away\n")
    plan = planned()
    assert (plan.base.commit, plan.base.ancestors) == (pinned, (first,))
    assert of_change(plan).base.ancestors == (pinned, first)


def test_secrets_of_either_are_masked(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write("gates.yaml", gates(rest="secrets: [OLD_KEY]\n"))
    repository.commit()
    repository.git("branch", "--force", "main")
    repository.write("gates.yaml", gates(rest="secrets: [NEW_KEY]\n"))
    monkeypatch.setenv("NEW_KEY", "hunter2-new")
    monkeypatch.setenv("OLD_KEY", "hunter2-old")
    with pytest.raises(UsageError, match="holds the value of a secret"):
        planned(agent="cli:sh hunter2-old")
    assert set(planned().policy.secrets) == {"OLD_KEY", "NEW_KEY"}


@pytest.mark.parametrize(
    ("there", "note"),
    [
        ((), ""),
        (("gates.yaml",), "the merge base {base} has no folder suites: this change judges itself"),
        (("suites/golden/a.yaml",), "the merge base {base} has no gates.yaml: this change judges itself"),
    ],
)
def test_a_change_that_brings_the_gate_judges_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], note: str
) -> None:
    repository = GitRepository(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in there:
        repository.write(name)
    base = repository.commit()
    repository.write("gates.yaml", gates())
    write_task(repository.path / "suites/golden/a.yaml", task_id="a")
    plan = planned()
    assert is_judged_by_itself(plan)
    assert plan.base.note == note.format(base=base[:12])
    assert len(plan.base.edits) == 2


def test_without_a_gates_file_on_either_side_the_shipped_policy_judges(repository: GitRepository) -> None:
    (repository.path / "gates.yaml").unlink()
    write_task(repository.path / "suites/adversarial/b.yaml", task_id="b", suite="adversarial")
    write_task(repository.path / "suites/failure_replays/c.yaml", task_id="c", suite="failure_replays")
    repository.commit()
    repository.git("branch", "--force", "main")
    loosen(repository)
    plan = planned()
    assert (plan.base.judged_by, plan.shipped_policy) == ("base", True)
    assert plan.tasks[0].grader_digest == plan.tasks[1].grader_digest


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("gates.yaml", "suites: 3\n", "gates.yaml:1:1: the key 'gates' is missing and 1 more"),
        ("suites/golden/b.yaml", "task_id: b\n", "suites/golden/b.yaml:1:1: the key 'suite' is missing and "),
        ("quarantine.yaml", "tasks: [{task: gone}]\n", "quarantine.yaml:1:"),
    ],
)
def test_a_merge_base_that_cannot_be_read_cannot_judge(
    repository: GitRepository, file: str, text: str, why: str
) -> None:
    repository.write(file, text)
    base = repository.commit()
    repository.git("branch", "--force", "main")
    repository.write("gates.yaml", gates())
    if file != "gates.yaml":
        (repository.path / file).unlink()
    plan = planned()
    assert is_judged_by_itself(plan)
    assert plan.base.note.startswith(f"the merge base {base[:12]} cannot be read, so this change judges itself: {why}")


def test_the_merge_base_says_that_every_change_judges_itself(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates(more="integrity: off"))
    repository.write("suites/golden/broken.yaml", "task_id: broken\n")
    repository.commit()
    repository.git("branch", "--force", "main")
    (repository.path / "suites/golden/broken.yaml").unlink()
    loosen(repository)
    plan = planned()
    assert is_judged_by_itself(plan)
    assert plan.base.note == (
        "this change edits what it is judged by (2 files) and judges itself: gates.yaml says `integrity: off` at the "
        "merge base"
    )


def test_a_change_cannot_switch_its_judges_off(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates(more="integrity: off"))
    loosen(repository)
    assert planned().base.judged_by == "base"


def test_a_gate_that_the_merge_base_does_not_have_judges_itself(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates() + "  nightly: {suites: [golden]}\n")
    plan = prepare(GateName.NIGHTLY, RunRequest())
    assert is_judged_by_itself(plan)
    assert plan.base.note.endswith("this change judges itself: gates.yaml has no gate nightly; it has ci_merge")


def test_a_change_may_bring_a_suite_that_the_gate_was_waiting_for(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates("golden, adversarial"))
    base = repository.commit()
    repository.git("branch", "--force", "main")
    loosen(repository)
    assert planned().base.judged_by == "base", "the suite is still not there"
    write_task(repository.path / "suites/adversarial/b.yaml", task_id="b", suite="adversarial")
    plan = planned()
    assert is_judged_by_itself(plan)
    assert (
        plan.base.note
        == f"the merge base {base[:12]} has no task of adversarial for ci_merge: this change judges itself"
    )


def test_a_selection_of_new_tasks_only_judges_itself(repository: GitRepository) -> None:
    write_task(repository.path / "suites/golden/new.yaml", task_id="new")
    assert planned(task="*").base.judged_by == "base"
    plan = planned(task="new")
    assert is_judged_by_itself(plan)
    assert "no task of ci_merge matches --task 'new'" in plan.base.note


def test_another_base_can_be_given(repository: GitRepository) -> None:
    loosen(repository)
    loosened = repository.commit()
    assert planned().base.judged_by == "base"
    plan = planned(base="HEAD")
    assert (plan.base.commit, plan.base.judged_by) == (loosened, "change")
    with pytest.raises(UsageError, match="--base gone: there is no such commit"):
        planned(base="gone")


def test_outside_of_the_repository_there_is_no_integrity(repository: GitRepository, tmp_path: Path) -> None:
    write_task(tmp_path / "elsewhere/suites/golden/a.yaml")
    plan = planned(suites=str(tmp_path / "elsewhere/suites"))
    assert is_judged_by_itself(plan)
    assert plan.base.note.startswith("the suites or the gates file lie outside of the repository")


def test_names_are_as_seen_from_a_folder_of_the_repository(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task(repository.path / "agents/evals/golden/b.yaml", task_id="b")
    repository.commit()
    repository.git("branch", "--force", "main")
    monkeypatch.chdir(repository.path / "agents")
    write_task(repository.path / "agents/evals/golden/b.yaml", task_id="b", graders=LOOSE)
    plan = planned(suites="evals", gates="../gates.yaml")
    assert plan.base.judged_by == "base"
    assert [edit.path for edit in plan.base.edits] == ["agents/evals/golden/b.yaml"]
    assert [task.file for task in plan.tasks] == ["evals/golden/b.yaml"]


def test_a_change_whose_own_files_are_wrong_is_refused_and_leaves_nothing(repository: GitRepository) -> None:
    repository.write("suites/golden/b.yaml", "task_id: b\n")
    with pytest.raises(InputError):
        planned()
    assert not Path(".passgate").exists()


def test_a_merge_base_that_cannot_be_run_is_refused_and_leaves_no_run(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates(rest="history: 'gopher://somewhere'\n"))
    repository.commit()
    repository.git("branch", "--force", "main")
    repository.write("gates.yaml", gates())
    with pytest.raises(StorageError, match="cannot be opened"):
        planned()
    assert list(Path(".passgate/runs").iterdir()) == []


def test_files_of_the_merge_base_stay_out_of_git(repository: GitRepository) -> None:
    loosen(repository)
    planned()
    assert ".passgate" not in repository.git("status", "--porcelain")


def test_a_run_that_was_begun_goes_on_with_the_same_judges(repository: GitRepository) -> None:
    loosen(repository)
    plan = planned()
    repository.write("gates.yaml", "broken: [")
    again = planned(run=plan.run_id, jobs=3)
    assert again == plan.model_copy(update={"request": plan.request.model_copy(update={"jobs": 3})})


def test_an_agent_whose_files_have_moved_is_another_one(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates(more="reuse: {agent_files: ['old/*.py']}"))
    repository.write("old/agent.py")
    repository.commit()
    repository.git("branch", "--force", "main")
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
    repository.commit()
    repository.git("branch", "--force", "main")
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
    repository.commit()
    repository.git("branch", "--force", "main")
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
    repository.commit()
    repository.git("branch", "--force", "main")
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
    repository.commit()
    repository.git("branch", "--force", "main")
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
    repository.commit()
    repository.git("branch", "--force", "main")
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
