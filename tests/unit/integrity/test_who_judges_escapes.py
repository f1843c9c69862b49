"""Ways in which a change could get out of the hands of its judges, each of which must be barred or told."""

from pathlib import Path

import pytest

from passgate.tasks.errors import InputError
from passgate.tasks.model.policy import Rule
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
    planned,
    task_text,
)


@pytest.mark.parametrize("branch", ["main~1", "main^{/The}", "@{-1}", "HEAD", "a..b", "-x"])
def test_what_is_no_name_of_a_branch_is_refused(repository: GitRepository, branch: str) -> None:
    repository.write("gates.yaml", gates(rest=f"baseline: {{branch: '{branch}'}}\n"))
    with pytest.raises(InputError, match=r"gates.yaml:6:\d+: .*is not the name of a branch"):
        planned()


def test_a_branch_without_a_gate_does_not_keep_the_one_that_has_it_from_judging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = GitRepository(tmp_path)
    monkeypatch.chdir(tmp_path)
    repository.commit("Nothing yet")
    repository.branch("develop")
    change(repository, {"gates.yaml": gates(rest="baseline: {branch: develop}\n"), "suites/golden/a.yaml": task_text()})
    base = repository.commit()
    repository.branch("feature")
    loosen(repository)
    plan = planned()
    assert (plan.base.judged_by, plan.base.commit) == ("base", base)
    assert "only this change's own gates file says that it goes into 'develop'" in plan.base.note


TWO_SUITES = gates("golden, adversarial")
B = "suites/adversarial/b.yaml"


@pytest.fixture
def base(repository: GitRepository) -> str:
    """The commit of a main whose gate waits for a suite; the change loosens a grader."""
    repository.write("gates.yaml", TWO_SUITES)
    commit = commit_on_main(repository)
    loosen(repository)
    return commit


def test_who_brings_a_suite_is_judged_by_the_merge_base_for_all_the_others(
    repository: GitRepository, base: str
) -> None:
    own = planned(base=base)
    assert own.base.judged_by == "base", "the suite is still not there"
    loose = TWO_SUITES.replace("task_failed", "").replace("k: 2", "k: 1")
    change(repository, {"gates.yaml": loose, B: task_text("b", suite="adversarial")})
    plan = planned()
    assert plan.base.judged_by == "base"
    assert plan.base.note == (
        f"the merge base {base[:12]} has no task of adversarial for ci_merge: the change's own run as new tasks"
    )
    assert [task.task_id for task in plan.tasks] == ["a", "b"]
    assert plan.tasks[0] == own.tasks[0]
    assert plan.tasks[1].k == 2, "by the policy of the merge base"
    assert plan.gate_policy.blocks_on == (Rule.TASK_FAILED,)
    assert [plan.suites_folder_for(task.suite) for task in plan.tasks] == [
        Path(plan.suites_folder),
        repository.path / "suites",
    ]


def test_a_task_does_not_get_away_into_a_new_suite(repository: GitRepository, base: str) -> None:
    own = planned(base=base)
    new = task_text(suite="adversarial", graders=LOOSE)
    moved = {"suites/golden/a.yaml": None, "suites/golden/z.yaml": task_text("z"), "suites/adversarial/a.yaml": new}
    change(repository, moved)
    plan = planned()
    assert plan.base.judged_by == "base"
    assert plan.tasks == own.tasks


def test_a_suite_that_cannot_be_read_by_the_policy_of_the_merge_base_is_not_brought(
    repository: GitRepository, base: str
) -> None:
    long = task_text("b", suite="adversarial", environment={"budgets": {"max_steps": 80}})
    change(repository, {"gates.yaml": TWO_SUITES.replace("max_steps: 20", "max_steps: 90"), B: long})
    plan = planned()
    assert plan.base.judged_by == "base"
    assert [task.task_id for task in plan.tasks] == ["a"]
    assert "those of this change cannot be run: suites/adversarial/b.yaml:" in plan.base.note


@pytest.mark.parametrize("leads", ["out", "inside"])
def test_suites_that_become_a_link_are_judged_by_those_they_were(
    repository: GitRepository, tmp_path: Path, leads: str
) -> None:
    own = planned()
    target = tmp_path / "out" if leads == "out" else repository.path / "mine"
    write_task(target / "golden/a.yaml", task_id="a", graders=LOOSE)
    repository.git("rm", "--quiet", "-r", "suites")
    change(repository, {"suites": target if leads == "out" else Path("mine")})
    repository.commit()
    plan = planned()
    assert plan.base.judged_by == "base"
    assert plan.tasks == own.tasks
    assert {"suites", "suites/golden/a.yaml"} <= {*edits_of(plan)}
    assert ("are outside the repository" in plan.base.note) == (leads == "out")


@pytest.mark.parametrize("brings", [{}, {"gates.yaml": gates().replace("task_failed", "")}], ids=["none", "one"])
def test_where_the_merge_base_has_no_gates_file_the_policy_that_was_shipped_judges(
    repository: GitRepository, brings: dict[str, str]
) -> None:
    (repository.path / "gates.yaml").unlink()
    commit_on_main(repository)
    own = planned()
    assert own.shipped_policy
    loosen(repository)
    change(repository, brings)
    plan = planned()
    assert (plan.base.judged_by, plan.shipped_policy, plan.policy) == ("base", True, own.policy)
    assert plan.tasks == own.tasks
    assert edits_of(plan) == [*brings, "suites/golden/a.yaml"]


EVALS = {"suites": "evals/suites"}


@pytest.fixture
def module(repository: GitRepository, tmp_path: Path) -> GitRepository:
    """Suites of a repository of their own, which is a submodule on main."""
    strict = GitRepository(tmp_path / "strict")
    strict.write("suites/golden/a.yaml", task_text())
    strict.commit()
    for place in ("evals", "suites/inner"):
        repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(strict.path), place)
    change(repository, {"suites/golden/a.yaml": None, "suites/golden/b.yaml": task_text("b")})
    commit_on_main(repository)
    return GitRepository(repository.path / "evals")


def test_a_submodule_that_is_not_there_any_more_is_told(repository: GitRepository, module: GitRepository) -> None:
    repository.git("rm", "--quiet", "--cached", "evals")
    (module.path / ".git").unlink()
    loosen(module)
    repository.commit()
    plan = planned(**EVALS)
    assert is_judged_by_itself(plan)
    assert "the submodule evals is not available at the commit of the merge base" in plan.base.note
    assert "evals" in edits_of(plan) or "evals/suites/golden/a.yaml" in edits_of(plan)


@pytest.mark.usefixtures("module")
def test_a_submodule_that_stays_is_there_for_the_merge_base_too(repository: GitRepository) -> None:
    own = planned()
    repository.write("suites/golden/b.yaml", task_text("b", graders=LOOSE))
    plan = planned()
    assert plan.base.judged_by == "base"
    assert plan.tasks == own.tasks
