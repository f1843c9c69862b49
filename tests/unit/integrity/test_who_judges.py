"""Who judges a change: the files of the merge base where it edits them, else its own."""

from pathlib import Path

import pytest

from passgate.tasks.errors import InputError, StorageError, UsageError
from passgate.tasks.model.run import RunRequest
from tests.builders import write_task
from tests.repositories import GitRepository
from tests.unit.changes import (
    LOOSE,
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
    theirs = of_change(plan)
    assert theirs.tasks[0].grader_digest != plan.tasks[0].grader_digest
    assert (theirs.run_id, theirs.base.judged_by, theirs.base.edits) == (f"{plan.run_id}/change", "change", ())
    assert (Path(plan.suites_folder) / "golden/a.yaml").is_file()
    assert Path(theirs.suites_folder) == repository.path / "suites"
    assert plan.request == theirs.request == RunRequest()


A, B = "suites/golden/a.yaml", "suites/golden/b.yaml"
GATES, NIGHTLY = {"gates.yaml": gates()}, gates().replace("ci_merge:", "nightly:")
LOOSENED = {A: task_text(graders=LOOSE)}
OFF = {"gates.yaml": gates(more="integrity: off")}
ITSELF = "so this change judges itself"
UNREAD = f"cannot be read, {ITSELF}: "


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({"gates.yaml": None, A: None}, GATES | {A: task_text()}, f"has no gates.yaml, no folder suites, {ITSELF}"),
        ({A: None}, LOOSENED, f"has no folder suites, {ITSELF}"),
        ({"gates.yaml": "suites: 3\n"}, GATES, f"{UNREAD}gates.yaml:1:1: the key 'gates' is missing and 1 more"),
        ({"gates.yaml": NIGHTLY}, GATES, f"{UNREAD}gates.yaml has no gate ci_merge; it has nightly"),
        ({B: "task_id: b\n"}, {B: None}, f"{UNREAD}{B}:1:1: the key 'suite' is missing and "),
        ({"quarantine.yaml": "tasks: [{task: gone}]\n"}, {"quarantine.yaml": None}, f"{UNREAD}quarantine.yaml:1:"),
    ],
    ids=["nothing", "no suites", "broken gates", "no such gate", "broken task", "broken quarantine"],
)
def test_a_merge_base_that_has_no_gate_or_cannot_be_read_cannot_judge(
    repository: GitRepository, before: dict[str, str | None], after: dict[str, str | None], why: str
) -> None:
    change(repository, before)
    base = commit_on_main(repository)
    change(repository, after)
    plan = planned()
    assert is_judged_by_itself(plan)
    assert plan.base.note.startswith(f"the merge base {base[:12]} {why}")
    assert set(edits_of(plan)) == set(after)


def test_a_selection_of_new_tasks_only_judges_itself(repository: GitRepository) -> None:
    repository.write(B, task_text("b"))
    assert planned(task="*").base.judged_by == "base"
    plan = planned(task="b")
    assert is_judged_by_itself(plan)
    assert "no task of ci_merge matches --task 'b'" in plan.base.note


def test_without_a_gates_file_of_another_name_the_change_judges_itself(repository: GitRepository) -> None:
    change(repository, {"gates.yaml": None, "mine.yaml": gates(), **LOOSENED})
    plan = planned(gates="mine.yaml")
    assert is_judged_by_itself(plan)
    assert plan.base.note.endswith(f"has no mine.yaml, {ITSELF}")
    assert edits_of(plan) == ["mine.yaml", A]


def test_the_merge_base_says_that_every_change_judges_itself(repository: GitRepository) -> None:
    change(repository, {**OFF, B: "task_id: broken\n"})
    base = commit_on_main(repository)
    change(repository, {B: None, **LOOSENED})
    plan = planned()
    assert is_judged_by_itself(plan)
    assert plan.base.note == (
        "this change edits what it is judged by (2 files) and judges itself: gates.yaml says `integrity: off` at the "
        f"merge base {base[:12]}"
    )


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
