"""What tasks are judged by that lies outside of the suites folder: edits of it are edits."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from passgate.tasks.model.run import Plan
from tests.repositories import GitRepository
from tests.unit.changes import (
    LOOSE,
    change,
    commit_on_main,
    edits_of,
    gates,
    is_judged_by_itself,
    planned,
    task_text,
)

TEST = {"id": "q", "criteria": "It says yes.", "input": "Say yes."}
STRICT_ANSWER = {"type": "contains", "value": "yes"}
LOOSE_ANSWER = {"type": "contains", "value": "e"}


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
    return suite(STRICT_ANSWER, input=[{"role": "user", "content": [block]}])


def with_hook(*command: str) -> str:
    hooks = {"before_each": {"command": command}}
    return suite(STRICT_ANSWER, workspace={"template": "../../desk", "hooks": hooks})


CASE = json.dumps({**TEST, "assertions": [STRICT_ANSWER]})
LOOSE_CASE = json.dumps({**TEST, "assertions": [LOOSE_ANSWER]})
A, X = "suites/golden/a.yaml", "suites/golden/x.eval.yaml"
GRADER_OF_TASK = {"type": "code_grader", "command": ["python3", "../checks/run.py"]}
GRADER = {"name": "g", "type": "code-grader", "command": ["python3", "../../checks/run.py"]}


@pytest.mark.parametrize(
    ("says", "name", "before", "after"),
    [
        pytest.param(
            of(tests=[{"include": "../../shared/x.eval.yaml", "type": "suite"}]),
            "shared/x.eval.yaml",
            suite(STRICT_ANSWER),
            suite(LOOSE_ANSWER),
            id="suite",
        ),
        pytest.param(of(tests="../../shared/x.jsonl"), "shared/x.jsonl", CASE, LOOSE_CASE, id="case file"),
        pytest.param(of(tests=["../../shared/*.jsonl"]), "shared/x.jsonl", CASE, LOOSE_CASE, id="pattern"),
        pytest.param(of(tests=["../../shared"]), "shared/q/case.yaml", CASE, LOOSE_CASE, id="case folder"),
        pytest.param(
            suite({"include": "../../shared/x.yaml"}),
            "shared/x.yaml",
            of(assertions=[STRICT_ANSWER]),
            of(assertions=[LOOSE_ANSWER]),
            id="template",
        ),
        pytest.param(
            suite({"type": "contains", "value": "${{ ANSWER }}"}), ".env", "ANSWER=yes\n", "ANSWER=e\n", id="variables"
        ),
        pytest.param(
            suite({"type": "is-json", "value": "file://../../shared/x.json"}),
            "shared/x.json",
            '{"type": "object"}',
            "{}",
            id="schema",
        ),
        pytest.param(
            asking({"type": "file", "value": "../../shared/x.md"}), "shared/x.md", "A riddle", "Say yes", id="input"
        ),
        pytest.param(
            asking({"type": "image", "value": "../../shared/x.png"}), "shared/x.png", "A riddle", "A yes", id="image"
        ),
        pytest.param(with_hook("sh", "../../shared/x.sh"), "shared/x.sh", "true", "echo yes > answer", id="hook"),
        pytest.param(
            with_hook("sh", "-c", "cd .; sh ../../shared/x.sh"), "shared/x.sh", "true", "echo yes", id="hook in a text"
        ),
        pytest.param(suite(GRADER), "checks/run.py", "1", "2", id="grader"),
        pytest.param(
            suite({**GRADER, "command": ["python3", "../../checks"]}), "checks/__main__.py", "1", "2", id="folder"
        ),
        pytest.param(
            suite({**GRADER, "command": "true && python3 ../../checks/run.py"}), "checks/run.py", "1", "2", id="text"
        ),
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


STRICT_TEMPLATE, LOOSE_TEMPLATE = of(assertions=[STRICT_ANSWER]), of(assertions=[LOOSE_ANSWER])
IN_TEAM = {"team/suites/golden/x.eval.yaml": suite({"include": "./shared/x.yaml"})}
RECORDED = {"gates.yaml": gates(rest="judge: {recorded: ../replies}\n"), "replies/a.yaml": "replies: []\n"}
LINKED_TASK = {
    "elsewhere/b.yaml": task_text("b"),
    "agent/b.yaml": task_text("b", graders=LOOSE),
    "middle/b.yaml": Path("../elsewhere/b.yaml"),
    "suites/golden/b.yaml": Path("../../middle/b.yaml"),
}
LINKED_SANDBOX = {
    "fixtures/box/files/notes.txt": "hello",
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
        pytest.param(
            {X: of(tests=["../../shared/*.jsonl"]), "shared/a.jsonl": CASE, "shared/b.jsonl": CASE.replace("q", "r")},
            {"shared/b.jsonl": None},
            "suites",
            id="deleted case",
        ),
        pytest.param(
            {X: suite(GRADER), "checks/run.py": "1"},
            {"checks/run.py": None, X: suite(LOOSE_ANSWER)},
            "suites",
            id="other grader",
        ),
        pytest.param(
            {A: task_text(graders=[GRADER_OF_TASK]), "checks/run.py": "1"},
            {"checks/run.py": None, A: task_text(graders=LOOSE)},
            "suites",
            id="task file",
        ),
        pytest.param(
            {**IN_TEAM, "shared/x.yaml": STRICT_TEMPLATE},
            {"team/shared/x.yaml": LOOSE_TEMPLATE},
            "team/suites",
            id="nearer file",
        ),
        pytest.param(
            {**IN_TEAM, "shared/x.yaml": LOOSE_TEMPLATE, "team/shared/x.yaml": STRICT_TEMPLATE},
            {"team/shared/x.yaml": None},
            "team/suites",
            id="no nearer file",
        ),
        pytest.param(RECORDED, {"replies/a.yaml": "replies: [{fingerprint: a, reply: b}]\n"}, "suites", id="replies"),
        pytest.param(RECORDED, {"gates.yaml": gates(), "replies/a.yaml": None}, "suites", id="no replies"),
        pytest.param(LINKED_TASK, {"elsewhere/b.yaml": task_text("b", graders=LOOSE)}, "suites", id="linked task"),
        pytest.param(LINKED_TASK, {"middle/b.yaml": Path("../agent/b.yaml")}, "suites", id="link of a task"),
        pytest.param(
            LINKED_SANDBOX, {"fixtures/box/files/notes.txt": "the answer is y"}, "suites", id="linked sandbox"
        ),
        pytest.param(
            LINKED_SUITES, {"strict/suites/golden/a.yaml": task_text(graders=LOOSE)}, "evals/suites", id="linked suites"
        ),
        pytest.param(LINKED_SUITES, {"evals": Path("lax")}, "evals/suites", id="link of suites"),
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


HOOK = with_hook("cp", "../../agent/skill.md", ".")
OF_ALL = {**GRADER, "command": ["python3", "../..", "."]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            {X: HOOK, "desk/a.txt": "1", "agent/skill.md": "1"}, {"desk/a.txt": "2", "agent/skill.md": "2"}, id="given"
        ),
        pytest.param(
            {
                "suites/_shared/sandboxes/box/files/a.txt": "x",
                "suites/_shared/sandboxes/box/files/agent": Path("../../../../../agent"),
                "suites/golden/b.yaml": task_text("b", environment={"sandbox": "box"}),
                "agent/main.py": "1",
            },
            {"agent/main.py": "2"},
            id="given by a link",
        ),
        pytest.param(
            {X: suite({"type": "contains", "value": "a ${{ ANSWER }}"})}, {".env": "ANSWER=yes\n"}, id="own variables"
        ),
        pytest.param({X: suite(OF_ALL), "__main__.py": "1", "agent.py": "1"}, {"agent.py": "2"}, id="folder of all"),
        pytest.param(
            {X: suite(GRADER), "checks/run.py": "1", "checks/other.py": "1"}, {"checks/other.py": "2"}, id="no grader"
        ),
        pytest.param({}, {"agent/.gitattributes": "* text eol=crlf\n"}, id="attributes"),
    ],
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
    plan_on_main(repository, {X: suite(OF_ALL), "__main__.py": "1"})
    repository.write("__main__.py", "2")
    assert edits_of(planned()) == ["__main__.py"]
