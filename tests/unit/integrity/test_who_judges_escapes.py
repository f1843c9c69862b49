"""Ways in which a change could get out of the hands of its judges, and files outside of the suites that judge."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from passgate.tasks.errors import InputError
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Plan
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

TOP = "../.."
TEST = {"id": "q", "criteria": "It says yes.", "input": "Say yes."}
STRICT = {"type": "contains", "value": "yes"}
LAX = {"type": "contains", "value": "e"}


def plan_on_main(repository: GitRepository, files: Mapping[str, str | Path | None], suites: str = "suites") -> Plan:
    """The plan of a gate with these files, which main has."""
    change(repository, files)
    commit_on_main(repository)
    plan = planned(suites=suites)
    assert plan.base.edits == ()
    return plan


def suite(*assertions: object, **more: object) -> str:
    return json.dumps({"tests": [{**TEST, "assertions": assertions, **more}]})


def of(**keys: object) -> str:
    return json.dumps(keys)


def asking(block: object) -> str:
    return suite(STRICT, input=[{"role": "user", "content": [block]}])


def with_hook(*command: str) -> str:
    hooks = {"before_each": {"command": command}}
    return suite(STRICT, workspace={"template": "../../desk", "hooks": hooks})


CASE, LAX_CASE = (json.dumps({**TEST, "assertions": [answer]}) for answer in (STRICT, LAX))
TEMPLATE, LAX_TEMPLATE = (of(assertions=[answer]) for answer in (STRICT, LAX))
A, X, RUN = "suites/golden/a.yaml", "suites/golden/x.eval.yaml", "checks/run.py"
GRADER = {"name": "g", "type": "code-grader", "command": ["python3", f"{TOP}/checks/run.py"]}
GRADER_OF_TASK = {"type": "code_grader", "command": ["python3", "../checks/run.py"]}


@pytest.mark.parametrize(
    ("says", "name", "before", "after"),
    [
        (of(tests=[{"include": f"{TOP}/x.eval.yaml", "type": "suite"}]), "x.eval.yaml", suite(STRICT), suite(LAX)),
        (of(tests=f"{TOP}/x.jsonl"), "x.jsonl", CASE, LAX_CASE),
        (of(tests=[f"{TOP}/*.jsonl"]), "x.jsonl", CASE, LAX_CASE),
        (of(tests=[f"{TOP}/shared"]), "shared/q/case.yaml", CASE, LAX_CASE),
        (suite({"include": f"{TOP}/shared/x.yaml"}), "shared/x.yaml", TEMPLATE, LAX_TEMPLATE),
        (suite({"type": "contains", "value": "${{ ANSWER }}"}), ".env", "ANSWER=yes\n", "ANSWER=e\n"),
        (suite({"type": "is-json", "value": f"file://{TOP}/x.json"}), "x.json", '{"type": "object"}', "{}"),
        (asking({"type": "file", "value": f"{TOP}/x.md"}), "x.md", "A riddle", "Say yes"),
        (asking({"type": "image", "value": f"{TOP}/x.png"}), "x.png", "A riddle", "A yes"),
        (with_hook("sh", f"{TOP}/x.sh"), "x.sh", "true", "echo yes > answer"),
        (with_hook("sh", "-c", f"cd .; sh {TOP}/x.sh"), "x.sh", "true", "echo yes"),
        (suite(GRADER), "checks/run.py", "1", "2"),
        (suite(GRADER | {"command": ["python3", f"{TOP}/checks"]}), "checks/__main__.py", "1", "2"),
        (suite(GRADER | {"command": f"true && python3 {TOP}/checks/run.py"}), "checks/run.py", "1", "2"),
    ],
    ids=[
        *("suite", "cases", "pattern", "folder", "template", "variables", "schema"),
        *("input", "image", "hook", "text of a hook", "grader", "program", "text"),
    ],
)
def test_a_change_of_what_an_eval_file_reads_elsewhere_is_judged_by_the_merge_base(
    repository: GitRepository, says: str, name: str, before: str, after: str
) -> None:
    repository.write("desk/notes.txt")
    own = plan_on_main(repository, {X: says, name: before})
    repository.write(name, after)
    repository.commit()
    plan = planned()
    assert (plan.base.judged_by, edits_of(plan)) == ("base", [name])
    assert {edit.what for edit in plan.base.edits} == {"tasks and graders"}
    assert plan.tasks[0] == own.tasks[0]
    assert plan.tasks[1].grader_digest == own.tasks[1].grader_digest
    assert plan.tasks[1].model_copy(update={"workspace": None}) == own.tasks[1].model_copy(update={"workspace": None})


TWO_CASES = {X: of(tests=[f"{TOP}/shared/*.jsonl"]), "shared/a.jsonl": CASE, "shared/b.jsonl": CASE.replace("q", "r")}
IN_TEAM = {"team/suites/golden/x.eval.yaml": suite({"include": "./shared/x.yaml"})}
REPLIES, NEW_REPLIES = "replies: []\n", "replies: [{fingerprint: a, reply: b}]\n"
RECORDED = {"gates.yaml": gates(rest="judge: {recorded: ../replies}\n"), "replies/a.yaml": REPLIES}
LINKED_TASK = {
    "elsewhere/b.yaml": task_text("b"),
    "agent/b.yaml": task_text("b", graders=LOOSE),
    "middle/b.yaml": Path("../elsewhere/b.yaml"),
    "suites/golden/b.yaml": Path("../../middle/b.yaml"),
}
NOTES = "fixtures/box/files/notes.txt"
LINKED_SANDBOX = {
    NOTES: "hello",
    "suites/_shared/sandboxes/box": Path("../../../fixtures/box"),
    "suites/golden/b.yaml": task_text("b", environment={"sandbox": "box"}),
}
LINKED_SUITES = {
    "strict/suites/golden/a.yaml": task_text(),
    "lax/suites/golden/a.yaml": task_text(graders=LOOSE),
    "evals": Path("strict"),
}


@pytest.mark.parametrize(
    ("before", "after", "suites"),
    [
        (TWO_CASES, {"shared/b.jsonl": None}, "suites"),
        ({X: suite(GRADER), RUN: "1"}, {RUN: None, X: suite(LAX)}, "suites"),
        ({A: task_text(graders=[GRADER_OF_TASK]), RUN: "1"}, {RUN: None, A: task_text(graders=LOOSE)}, "suites"),
        (IN_TEAM | {"shared/x.yaml": TEMPLATE}, {"team/shared/x.yaml": LAX_TEMPLATE}, "team/suites"),
        (
            IN_TEAM | {"shared/x.yaml": LAX_TEMPLATE, "team/shared/x.yaml": TEMPLATE},
            {"team/shared/x.yaml": None},
            "team/suites",
        ),
        (RECORDED, {"replies/a.yaml": NEW_REPLIES}, "suites"),
        (RECORDED, {"gates.yaml": gates(), "replies/a.yaml": None}, "suites"),
        (LINKED_TASK, {"elsewhere/b.yaml": task_text("b", graders=LOOSE)}, "suites"),
        (LINKED_TASK, {"middle/b.yaml": Path("../agent/b.yaml")}, "suites"),
        (LINKED_SANDBOX, {NOTES: "the answer is y"}, "suites"),
        (LINKED_SUITES, {"strict/suites/golden/a.yaml": task_text(graders=LOOSE)}, "evals/suites"),
        (LINKED_SUITES, {"evals": Path("lax")}, "evals/suites"),
    ],
    ids=[
        *("case", "grader", "task file", "nearer file", "no nearer file", "replies", "no replies"),
        *("linked task", "link of a task", "linked sandbox", "linked suites", "link of suites"),
    ],
)
def test_a_change_of_what_lies_outside_of_the_suites_is_judged_by_the_merge_base(
    repository: GitRepository,
    before: dict[str, str | Path],
    after: dict[str, str | Path | None],
    suites: str,
) -> None:
    """Paths lead to the nearest folder above that has such a file, and links to what they led to."""
    own = plan_on_main(repository, before, suites)
    change(repository, after)
    plan = planned(suites=suites)
    assert (plan.base.judged_by, edits_of(plan)) == ("base", list(after))
    assert plan.tasks == own.tasks
    top = Path(plan.suites_folder, *[".."] * (suites.count("/") + 1))
    old = {name: before[name] for name in after if isinstance(before.get(name), str)}
    assert {name: (top / name).read_text() for name in old} == old


HOOK = with_hook("cp", f"{TOP}/agent/skill.md", ".")
OF_ALL = suite(GRADER | {"command": ["python3", TOP, "."]})
VARIABLE = suite({"type": "contains", "value": "a ${{ ANSWER }}"})
BOX = {
    "suites/_shared/sandboxes/box/files/a.txt": "x",
    "suites/_shared/sandboxes/box/files/agent": Path("../../../../../agent"),
    "suites/golden/b.yaml": task_text("b", environment={"sandbox": "box"}),
    "agent/main.py": "1",
}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({X: HOOK, "desk/a.txt": "1", "agent/skill.md": "1"}, {"desk/a.txt": "2", "agent/skill.md": "2"}),
        (BOX, {"agent/main.py": "2"}),
        ({X: VARIABLE}, {".env": "ANSWER=yes\n"}),
        ({X: OF_ALL, "__main__.py": "1", "agent.py": "1"}, {"agent.py": "2"}),
        ({X: suite(GRADER), RUN: "1", "checks/other.py": "1"}, {"checks/other.py": "2"}),
        ({}, {"agent/.gitattributes": "* text eol=crlf\n"}),
    ],
    ids=["given", "given by a link", "own variables", "folder of all", "no grader", "attributes"],
)
def test_a_change_of_what_does_not_judge_is_no_edit(
    repository: GitRepository, before: dict[str, str | Path], after: dict[str, str]
) -> None:
    plan_on_main(repository, before)
    change(repository, after)
    plan = planned()
    assert is_judged_by_itself(plan)
    assert edits_of(plan) == []


def test_of_a_folder_that_holds_the_suites_only_its_program_judges(repository: GitRepository) -> None:
    plan_on_main(repository, {X: OF_ALL, "__main__.py": "1"})
    repository.write("__main__.py", "2")
    assert edits_of(planned()) == ["__main__.py"]


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
