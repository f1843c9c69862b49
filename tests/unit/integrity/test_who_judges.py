"""Who judges a change: the files of the merge base where it edits them, else its own."""

from pathlib import Path

import pytest

from passgate.tasks.errors import InputError, StorageError, UnknownJudgeError, UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.base_checkout import MOST_FILES
from passgate.tasks.load import load
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName
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


def later_on_main(repository: GitRepository, task_id: str = "a", **fields: object) -> str:
    """Main goes on with a task, after the change has left it; the commit."""
    repository.checkout("main")
    write_task(repository.path / f"suites/golden/{task_id}.yaml", task_id=task_id, **fields)
    commit = repository.commit("Later")
    repository.checkout("change")
    return commit


def test_a_branch_from_an_old_commit_is_judged_by_the_grader_of_today(repository: GitRepository) -> None:
    strict = [{"type": "output_check", "contains": ["the very words"]}]
    tip = later_on_main(repository, graders=strict)
    repository.write("agent.txt")
    repository.commit("The agent alone")
    plan = planned()
    assert (plan.base.judged_by, plan.base.judging, plan.base.edits) == ("base", tip, ())
    assert plan.tasks[0].graders[0].model_dump()["contains"] == ("the very words",)
    assert plan.base.note == (
        f"a file that judges is newer on the target branch than in this change, and in CI the tip of the target "
        f"branch {tip[:12]} judges: merge it here"
    )


def test_a_run_by_hand_is_judged_by_the_working_folder_and_the_base_stands_beside_it(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    tip = later_on_main(repository, "b", graders=LOOSE)
    repository.write("agent.txt")
    repository.commit("The agent")
    loosen(repository)  # in no commit
    plan = load(GateName.CI_MERGE, RunRequest(), by_hand=True)
    assert (plan.base.judged_by, plan.base.judging, edits_of(plan)) == ("change", tip, ["suites/golden/a.yaml"])
    assert [task.task_id for task in plan.tasks] == ["a"]
    assert {task.task_id for task in of_change(plan).tasks} == {"a", "b"}
    assert plan.base.doubt == "", "nothing is at stake"
    for name in ("GITHUB_BASE_REF", "JENKINS_URL"):
        with monkeypatch.context() as job:
            job.setenv(name, "main")
            assert load(GateName.CI_MERGE, RunRequest(), by_hand=True).base.judged_by == "base"
    assert load(GateName.CI_MERGE, RunRequest(base="main"), by_hand=True).base.judged_by == "base"
    monkeypatch.setenv("CI", "1")
    with pytest.raises(UnknownJudgeError, match="the run began outside of CI"):
        load(GateName.CI_MERGE, RunRequest(run=plan.run_id), by_hand=True)


def test_only_what_the_change_edits_is_an_edit(repository: GitRepository) -> None:
    tip = later_on_main(repository, "b", graders=LOOSE)
    loosen(repository)
    repository.commit("Loosen")
    plan = planned()
    assert (plan.base.judging, edits_of(plan)) == (tip, ["suites/golden/a.yaml"])
    assert {task.task_id for task in plan.tasks} == {"a", "b"}
    assert {task.task_id for task in of_change(plan).tasks} == {"a"}
    assert "a file that judges is newer" in plan.base.note


def test_in_ci_a_doubt_ends_the_run_before_it_begins(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    loosen(repository)
    repository.commit("Loosen")
    doubtful = planned()
    assert doubtful.base.doubt.startswith("only a local branch 'main' says what judges")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(UnknownJudgeError, match=r"nothing was run: only a local branch 'main'.* --base"):
        planned()
    with pytest.raises(UnknownJudgeError):
        planned(run=doubtful.run_id)
    assert [folder.name for folder in Path(".passgate/runs").iterdir()] == [doubtful.run_id]
    given = planned(base="main")
    assert (given.base.judged_by, given.base.doubt) == ("base", "")
    repository.checkout("main")
    assert planned().base.doubt == "", "without a change there is nothing to doubt"


def test_what_keeps_the_tip_from_judging_is_a_doubt(repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change could name a folder that is too large to be looked at."""
    assert MOST_FILES > 3
    monkeypatch.setattr("passgate.tasks.integrity.base_checkout.MOST_FILES", 0)
    loosen(repository)
    plan = planned(base="main")
    assert plan.base.judged_by == "change"
    assert "cannot judge this change" in plan.base.doubt
    monkeypatch.setenv("CI", "1")
    with pytest.raises(UnknownJudgeError, match="cannot judge this change"):
        planned(base="main")


def test_a_gate_that_lets_changes_judge_themselves_leaves_no_doubt(
    repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("gates.yaml", gates(more="integrity: off"))
    main = repository.commit()
    loosen(repository)
    monkeypatch.setenv("CI", "1")
    plan = planned(base=main)
    assert (plan.base.judged_by, plan.base.doubt) == ("change", "")
    assert RunStore.of(plan.run_id).here.is_dir()
