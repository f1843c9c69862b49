"""Who judges a change: the files of the merge base where it edits them, else its own."""

from pathlib import Path

import pytest

from passgate.tasks.errors import InputError, StorageError, UsageError
from passgate.tasks.load import load
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName
from tests.builders import write_task
from tests.repositories import GitRepository
from tests.unit.changes import (
    change,
    commit_on_main,
    edits_of,
    gates,
    is_judged_by_itself,
    loosen,
    of_change,
    planned,
    task_text,
)


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


@pytest.mark.parametrize(
    ("there", "missing"),
    [pytest.param({}, "no gates.yaml, no folder suites"), pytest.param({"gates.yaml": "x"}, "no folder suites")],
    ids=["nothing", "no suites"],
)
def test_a_change_that_brings_the_gate_judges_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: dict[str, str], missing: str
) -> None:
    repository = GitRepository(tmp_path)
    monkeypatch.chdir(tmp_path)
    change(repository, there)
    base = repository.commit()
    change(repository, {"gates.yaml": gates(), "suites/golden/a.yaml": task_text()})
    plan = planned()
    assert is_judged_by_itself(plan)
    assert plan.base.note == f"the merge base {base[:12]} has {missing}, so this change judges itself"
    assert len(plan.base.edits) == 2


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
    base = commit_on_main(repository)
    repository.write("gates.yaml", gates())
    if file != "gates.yaml":
        (repository.path / file).unlink()
    plan = planned()
    assert is_judged_by_itself(plan)
    assert plan.base.note.startswith(f"the merge base {base[:12]} cannot be read, so this change judges itself: {why}")


def test_only_the_merge_base_says_that_every_change_judges_itself(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates(more="integrity: off"))
    loosen(repository)
    assert planned().base.judged_by == "base", "a change cannot switch its judges off"
    repository.git("checkout", "--quiet", "suites")
    repository.write("suites/golden/broken.yaml", "task_id: broken\n")
    base = commit_on_main(repository)
    (repository.path / "suites/golden/broken.yaml").unlink()
    loosen(repository)
    plan = planned()
    assert is_judged_by_itself(plan)
    assert plan.base.note == (
        "this change edits what it is judged by (2 files) and judges itself: gates.yaml says `integrity: off` at the "
        f"merge base {base[:12]}"
    )


def test_a_gate_that_the_merge_base_does_not_have_judges_itself(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates() + "  nightly: {suites: [golden]}\n")
    plan = load(GateName.NIGHTLY, RunRequest())
    assert is_judged_by_itself(plan)
    assert plan.base.note.endswith("this change judges itself: gates.yaml has no gate nightly; it has ci_merge")


def test_without_a_gates_file_of_another_name_the_change_judges_itself(repository: GitRepository) -> None:
    (repository.path / "gates.yaml").rename(repository.path / "mine.yaml")
    loosen(repository)
    plan = planned(gates="mine.yaml")
    assert is_judged_by_itself(plan)
    assert plan.base.note.endswith("has no mine.yaml, so this change judges itself")
    assert edits_of(plan) == ["mine.yaml", "suites/golden/a.yaml"]


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
    with pytest.raises(UsageError, match="--base gone: the repository of"):
        planned(base="gone")


def test_outside_of_the_repository_there_is_no_integrity(repository: GitRepository, tmp_path: Path) -> None:
    write_task(tmp_path / "elsewhere/suites/golden/a.yaml")
    plan = planned(suites=str(tmp_path / "elsewhere/suites"))
    assert is_judged_by_itself(plan)
    assert plan.base.note.startswith("the suites or the gates file are outside the repository")


def test_a_change_whose_own_files_are_wrong_is_refused_and_leaves_nothing(repository: GitRepository) -> None:
    repository.write("suites/golden/b.yaml", "task_id: b\n")
    with pytest.raises(InputError):
        planned()
    assert not Path(".passgate").exists()


def test_a_merge_base_that_cannot_be_run_is_refused_and_leaves_no_run(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates(rest="history: 'gopher://somewhere'\n"))
    commit_on_main(repository)
    repository.write("gates.yaml", gates())
    with pytest.raises(StorageError, match="cannot be opened"):
        planned()
    assert list(Path(".passgate/runs").iterdir()) == []


def test_a_run_that_was_begun_goes_on_with_the_same_judges(repository: GitRepository) -> None:
    loosen(repository)
    plan = planned()
    repository.write("gates.yaml", "broken: [")
    again = planned(run=plan.run_id, jobs=3)
    assert again == plan.model_copy(update={"request": plan.request.model_copy(update={"jobs": 3})})
