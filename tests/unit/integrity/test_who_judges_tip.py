"""Changes that the tip of the target branch judges, and in CI none that may have chosen their judge."""

from pathlib import Path

import pytest

from passgate.tasks.errors import UnknownJudgeError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.base_checkout import MOST_FILES
from passgate.tasks.load import load
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName
from tests.builders import write_task
from tests.repositories import GitRepository
from tests.unit.changes import LOOSE, edits_of, gates, loosen, of_change, planned


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
