"""Ways in which a change could get out of the hands of its judges, each of which must be barred or told."""

from pathlib import Path

import pytest

from passgate.tasks.errors import InputError
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Plan
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


def edits_of(plan: Plan) -> list[str]:
    return [edit.path for edit in plan.base.edits]


def use_submodule(repository: GitRepository, place: str, source: Path) -> GitRepository:
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source), place)
    return GitRepository(repository.path / place)


def loosen_all(repository: GitRepository, branch: str) -> None:
    """The grader, the policy, and the name of the branch that says who judges."""
    loosen(repository)
    rest = f"baseline: {{branch: '{branch}'}}\n"
    repository.write("gates.yaml", gates(rest=rest).replace("task_failed", ""))
    repository.commit()


@pytest.fixture
def branches(repository: GitRepository) -> GitRepository:
    """Beside main there are a branch that is older than the gate and one that has nothing in common with it."""
    repository.git("checkout", "--quiet", "--orphan", "gh-pages")
    repository.git("rm", "--quiet", "-rf", ".")
    repository.write("index.html")
    repository.commit()
    repository.checkout("change")
    return repository


@pytest.mark.parametrize("target", ["main", "", "not-here"])
@pytest.mark.parametrize("branch", ["nowhere", "gh-pages", "change"])
def test_a_change_cannot_name_the_branch_that_judges_it(
    branches: GitRepository, branch: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_BASE_REF", target)
    base = branches.git("rev-parse", "main")
    loosen_all(branches, branch)
    plan = planned()
    assert (plan.base.judged_by, plan.base.commit) == ("base", base)
    assert edits_of(plan) == ["gates.yaml", "suites/golden/a.yaml"]
    assert plan.gate_policy.blocks_on == (Rule.TASK_FAILED,)
    assert of_change(plan).base.ancestors == plan.base.ancestors == (base,)


@pytest.mark.parametrize("branch", ["main~1", "main^{/The}", "@{-1}", "HEAD", "a..b", "-x"])
def test_what_is_no_name_of_a_branch_is_refused(repository: GitRepository, branch: str) -> None:
    loosen_all(repository, branch)
    with pytest.raises(InputError, match=r"gates.yaml:6:\d+: .*is not the name of a branch"):
        planned()


def test_the_branch_that_main_names_judges(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates(rest="baseline: {branch: develop}\n"))
    commit_on_main(repository)
    repository.branch("develop")
    loosen(repository)
    base = repository.commit()
    repository.branch("feature")
    repository.write("gates.yaml", gates())
    plan = planned()
    assert (plan.base.judged_by, plan.base.commit, edits_of(plan)) == ("base", base, ["gates.yaml"])


def test_a_branch_that_only_the_change_names_is_told(repository: GitRepository) -> None:
    repository.git("branch", "--move", "main", "trunk")
    loosen_all(repository, "change")
    plan = planned()
    assert is_judged_by_itself(plan)
    assert "only this change's own gates file says that it goes into 'change'" in plan.base.note


def test_a_branch_without_a_gate_does_not_keep_the_one_that_has_it_from_judging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = GitRepository(tmp_path)
    monkeypatch.chdir(tmp_path)
    repository.commit("Nothing yet")
    repository.branch("develop")
    repository.write("gates.yaml", gates(rest="baseline: {branch: develop}\n"))
    write_task(repository.path / "suites/golden/a.yaml", task_id="a")
    base = repository.commit()
    repository.branch("feature")
    loosen(repository)
    plan = planned()
    assert (plan.base.judged_by, plan.base.commit) == ("base", base)
    assert "only this change's own gates file says that it goes into 'develop'" in plan.base.note


@pytest.mark.parametrize("name", [".gitattributes", "suites/.gitattributes", "suites/golden/.gitattributes"])
def test_attributes_that_change_what_is_read_are_an_edit(repository: GitRepository, tmp_path: Path, name: str) -> None:
    own = planned()
    repository.write(name, "*.yaml text eol=crlf\n")
    repository.commit()
    clone = tmp_path / "clone"
    repository.git("-c", "init.defaultBranch=main", "clone", "--quiet", str(repository.path), str(clone))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(clone)
        monkeypatch.setenv("GITHUB_BASE_REF", "main")
        assert b"\r\n" in (clone / "suites/golden/a.yaml").read_bytes()
        plan = planned()
        assert (plan.base.judged_by, edits_of(plan)) == ("base", [name])
        assert plan.tasks == own.tasks
        assert b"\r\n" not in (Path(plan.suites_folder) / "golden/a.yaml").read_bytes()


def test_attributes_elsewhere_are_no_edit(repository: GitRepository) -> None:
    repository.write("agent/.gitattributes", "* text eol=crlf\n")
    assert edits_of(planned()) == []


def test_who_brings_a_suite_is_judged_by_the_merge_base_for_all_the_others(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates("golden, adversarial"))
    base = commit_on_main(repository)
    own = planned()
    loosen(repository)
    repository.write("gates.yaml", gates("golden, adversarial").replace("task_failed", "").replace("k: 2", "k: 1"))
    write_task(repository.path / "suites/adversarial/b.yaml", task_id="b", suite="adversarial")
    plan = planned()
    assert plan.base.judged_by == "base"
    assert plan.base.note == (
        f"the merge base {base[:12]} has no task of adversarial for ci_merge: the change's own run as new tasks"
    )
    assert [task.task_id for task in plan.tasks] == ["a", "b"]
    assert plan.tasks[0] == own.tasks[0]
    assert plan.tasks[1].k == 2, "by the policy of the merge base"
    assert plan.gate_policy.blocks_on == (Rule.TASK_FAILED,)
    folders = [plan.folder_of(task.suite) for task in plan.tasks]
    assert folders == [Path(plan.suites_folder), repository.path / "suites"]


def test_a_task_does_not_get_away_into_a_new_suite(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates("golden, adversarial"))
    commit_on_main(repository)
    own = planned()
    (repository.path / "suites/golden/a.yaml").unlink()
    write_task(repository.path / "suites/golden/z.yaml", task_id="z")
    write_task(repository.path / "suites/adversarial/a.yaml", task_id="a", suite="adversarial", graders=LOOSE)
    plan = planned()
    assert plan.base.judged_by == "base"
    assert plan.tasks == own.tasks


def test_a_suite_that_cannot_be_read_by_the_policy_of_the_merge_base_is_not_brought(repository: GitRepository) -> None:
    repository.write("gates.yaml", gates("golden, adversarial"))
    commit_on_main(repository)
    repository.write("gates.yaml", gates("golden, adversarial").replace("max_steps: 20", "max_steps: 90"))
    write_task(
        repository.path / "suites/adversarial/b.yaml",
        task_id="b",
        suite="adversarial",
        environment={"budgets": {"max_steps": 80}},
    )
    loosen(repository)
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
    (repository.path / "suites").symlink_to(target if leads == "out" else "mine")
    repository.commit()
    plan = planned()
    assert plan.base.judged_by == "base"
    assert plan.tasks == own.tasks
    assert {"suites", "suites/golden/a.yaml"} <= {*edits_of(plan)}
    assert ("are outside the repository" in plan.base.note) == (leads == "out")


def test_variables_behind_a_link_that_the_change_makes_do_not_reach_the_tasks_of_the_merge_base(
    repository: GitRepository,
) -> None:
    text = "tests: [{id: q, criteria: c, input: 'Say ${{ WORD }}', assertions: [{type: contains, value: yeah}]}]\n"
    repository.write("suites/golden/x.eval.yaml", text)
    commit_on_main(repository)
    repository.git("mv", "suites", "mine")
    repository.write("mine/.env", "WORD=hello\n")
    (repository.path / "suites").symlink_to("mine")
    repository.commit()
    plan = planned()
    assert plan.base.judged_by == "base"
    assert plan.tasks[1].prompt.strip() == "Say"


def test_a_link_above_the_suites_that_leads_elsewhere_now_is_an_edit(repository: GitRepository) -> None:
    write_task(repository.path / "strict/suites/golden/a.yaml", task_id="a")
    write_task(repository.path / "lax/suites/golden/a.yaml", task_id="a", graders=LOOSE)
    (repository.path / "evals").symlink_to("strict")
    commit_on_main(repository)
    own = planned(suites="evals/suites")
    (repository.path / "evals").unlink()
    (repository.path / "evals").symlink_to("lax")
    repository.commit()
    plan = planned(suites="evals/suites")
    assert (plan.base.judged_by, edits_of(plan)) == ("base", ["evals"])
    assert plan.tasks == own.tasks


@pytest.fixture
def strict(tmp_path: Path) -> GitRepository:
    """Suites of a repository of their own."""
    made = GitRepository(tmp_path / "strict")
    write_task(made.path / "suites/golden/a.yaml", task_id="a")
    made.commit()
    return made


def _with_submodule(repository: GitRepository, strict: GitRepository) -> GitRepository:
    module = use_submodule(repository, "evals", strict.path)
    commit_on_main(repository)
    return module


def test_suites_of_a_submodule_that_moves_are_judged_by_those_they_were(
    repository: GitRepository, strict: GitRepository
) -> None:
    module = _with_submodule(repository, strict)
    own = planned(suites="evals/suites")
    loosen(module)
    module.commit()
    repository.commit()
    plan = planned(suites="evals/suites")
    assert (plan.base.judged_by, edits_of(plan)) == ("base", ["evals"])
    assert plan.tasks == own.tasks


def test_a_submodule_that_is_not_there_any_more_is_told(repository: GitRepository, strict: GitRepository) -> None:
    _with_submodule(repository, strict)
    repository.git("rm", "--quiet", "--cached", "evals")
    (repository.path / "evals/.git").unlink()
    write_task(repository.path / "evals/suites/golden/a.yaml", task_id="a", graders=LOOSE)
    repository.commit()
    plan = planned(suites="evals/suites")
    assert is_judged_by_itself(plan)
    assert "the submodule evals is not available at the commit of the merge base" in plan.base.note
    assert "evals" in edits_of(plan) or "evals/suites/golden/a.yaml" in edits_of(plan)


def test_a_submodule_that_stays_is_there_for_the_merge_base_too(
    repository: GitRepository, strict: GitRepository
) -> None:
    use_submodule(repository, "suites/inner", strict.path)
    repository.git("mv", "suites/golden/a.yaml", "suites/golden/b.yaml")
    write_task(repository.path / "suites/golden/b.yaml", task_id="b")
    commit_on_main(repository)
    own = planned()
    write_task(repository.path / "suites/golden/b.yaml", task_id="b", graders=LOOSE)
    plan = planned()
    assert plan.base.judged_by == "base"
    assert plan.tasks == own.tasks


def test_a_change_that_brings_a_gates_file_is_judged_by_the_policy_that_was_shipped(repository: GitRepository) -> None:
    (repository.path / "gates.yaml").unlink()
    commit_on_main(repository)
    own = planned()
    assert own.shipped_policy
    loosen(repository)
    repository.write("gates.yaml", gates().replace("task_failed", ""))
    plan = planned()
    assert (plan.base.judged_by, plan.shipped_policy, plan.policy) == ("base", True, own.policy)
    assert plan.tasks == own.tasks
    assert edits_of(plan) == ["gates.yaml", "suites/golden/a.yaml"]
