"""What tasks are judged by that lies outside of the suites folder: edits of it are edits."""

import json
from pathlib import Path

import pytest

from passgate.tasks.model.run import Plan
from tests.builders import write_task
from tests.repositories import GitRepository
from tests.unit.changes import LOOSE, commit_on_main, gate_on_main, gates, is_judged_by_itself, loosen, planned

TEST = {"id": "q", "criteria": "It says yes.", "input": "Say yes."}
STRICT_ANSWER = {"type": "contains", "value": "yes"}
LOOSE_ANSWER = {"type": "contains", "value": "e"}


def plan_on_main(repository: GitRepository, files: dict[str, str] | None = None) -> Plan:
    """The plan of a gate with these files, which main has."""
    for name, text in (files or {}).items():
        repository.write(name, text)
    commit_on_main(repository)
    plan = planned()
    assert plan.base.edits == ()
    return plan


def edits_of(plan: Plan) -> list[str]:
    assert {edit.what for edit in plan.base.edits} <= {"tasks and graders"}
    return [edit.path for edit in plan.base.edits]


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
    own = plan_on_main(repository, {"suites/golden/x.eval.yaml": says, name: before})
    repository.write(name, after)
    repository.commit()
    plan = planned()
    assert (plan.base.judged_by, edits_of(plan)) == ("base", [name])
    assert plan.tasks[0] == own.tasks[0]
    assert plan.tasks[1].grader_digest == own.tasks[1].grader_digest
    assert plan.tasks[1].model_copy(update={"workspace": None}) == own.tasks[1].model_copy(update={"workspace": None})


def test_what_the_agent_is_given_is_the_changes_own(repository: GitRepository) -> None:
    copied = with_hook("cp", "../../agent/skill.md", ".")
    plan_on_main(repository, {"suites/golden/x.eval.yaml": copied, "desk/a.txt": "1", "agent/skill.md": "1"})
    repository.write("desk/a.txt", "2")
    repository.write("agent/skill.md", "2")
    assert is_judged_by_itself(planned())


def test_links_in_what_the_agent_is_given_are_the_changes_own(repository: GitRepository) -> None:
    box = repository.write("suites/_shared/sandboxes/box/files/a.txt").parent
    (box / "agent").symlink_to("../../../../../agent")
    write_task(repository.path / "suites/golden/b.yaml", task_id="b", environment={"sandbox": "box"})
    plan_on_main(repository, {"agent/main.py": "1"})
    repository.write("agent/main.py", "2")
    assert is_judged_by_itself(planned())


def test_variables_that_git_does_not_have_are_those_of_the_machine(repository: GitRepository) -> None:
    answer = suite({"type": "contains", "value": "a ${{ ANSWER }}"})
    plan_on_main(repository, {"suites/golden/x.eval.yaml": answer})
    repository.write(".env", "ANSWER=yes\n")
    plan = planned()
    assert is_judged_by_itself(plan)
    assert edits_of(plan) == []


@pytest.mark.parametrize("sign", ["added", "deleted"])
def test_a_nearer_file_of_the_same_name_is_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: str) -> None:
    """Paths lead to the nearest folder above that has such a file."""
    repository = gate_on_main(tmp_path / "repository", monkeypatch)
    repository.git("rm", "--quiet", "-r", "suites")
    write_task(repository.path / "team/suites/golden/a.yaml", task_id="a")
    repository.write("team/suites/golden/x.eval.yaml", suite({"include": "./shared/x.yaml"}))
    repository.write("shared/x.yaml", of(assertions=[STRICT_ANSWER if sign == "added" else LOOSE_ANSWER]))
    if sign == "deleted":
        repository.write("team/shared/x.yaml", of(assertions=[STRICT_ANSWER]))
    commit_on_main(repository)
    own = planned(suites="team/suites")
    if sign == "deleted":
        (repository.path / "team/shared/x.yaml").unlink()
    else:
        repository.write("team/shared/x.yaml", of(assertions=[LOOSE_ANSWER]))
    plan = planned(suites="team/suites")
    assert (plan.base.judged_by, edits_of(plan)) == ("base", ["team/shared/x.yaml"])
    assert plan.tasks == own.tasks


def test_a_case_that_is_deleted_elsewhere_is_an_edit(repository: GitRepository) -> None:
    other = CASE.replace('"q"', '"r"')
    files = {"shared/a.jsonl": CASE, "shared/b.jsonl": other}
    own = plan_on_main(repository, {"suites/golden/x.eval.yaml": of(tests=["../../shared/*.jsonl"]), **files})
    (repository.path / "shared/b.jsonl").unlink()
    plan = planned()
    assert (plan.base.judged_by, edits_of(plan)) == ("base", ["shared/b.jsonl"])
    assert plan.tasks == own.tasks


def test_a_change_that_goes_by_other_files_is_told_those_that_the_merge_base_goes_by(
    repository: GitRepository,
) -> None:
    own = plan_on_main(repository, {"suites/golden/x.eval.yaml": suite(GRADER), "checks/run.py": "1"})
    repository.write("suites/golden/x.eval.yaml", suite(LOOSE_ANSWER))
    (repository.path / "checks/run.py").unlink()
    plan = planned()
    assert (plan.base.judged_by, edits_of(plan)) == ("base", ["checks/run.py", "suites/golden/x.eval.yaml"])
    assert plan.tasks == own.tasks


def test_a_task_file_that_goes_by_other_files_gets_those_of_the_merge_base(repository: GitRepository) -> None:
    grader = {"type": "code_grader", "command": ["python3", "../checks/run.py"]}
    write_task(repository.path / "suites/golden/a.yaml", task_id="a", graders=[grader])
    own = plan_on_main(repository, {"checks/run.py": "1"})
    loosen(repository)
    (repository.path / "checks/run.py").unlink()
    plan = planned()
    assert edits_of(plan) == ["checks/run.py", "suites/golden/a.yaml"]
    assert plan.tasks == own.tasks
    assert (Path(plan.suites_folder) / "../checks/run.py").read_text() == "1"


def test_a_task_that_is_a_link_is_judged_by_what_it_led_to(repository: GitRepository) -> None:
    write_task(repository.path / "elsewhere/b.yaml", task_id="b")
    (repository.path / "middle").mkdir()
    (repository.path / "middle/b.yaml").symlink_to("../elsewhere/b.yaml")
    (repository.path / "suites/golden/b.yaml").symlink_to("../../middle/b.yaml")
    own = plan_on_main(repository)
    write_task(repository.path / "elsewhere/b.yaml", task_id="b", graders=LOOSE)
    plan = planned()
    assert (plan.base.judged_by, edits_of(plan)) == ("base", ["elsewhere/b.yaml"])
    assert plan.tasks == own.tasks
    repository.git("checkout", "--quiet", "elsewhere/b.yaml")
    write_task(repository.path / "agent/b.yaml", task_id="b", graders=LOOSE)
    plan_on_main(repository)
    (repository.path / "middle/b.yaml").unlink()
    (repository.path / "middle/b.yaml").symlink_to("../agent/b.yaml")
    plan = planned()
    assert (plan.base.judged_by, edits_of(plan)) == ("base", ["middle/b.yaml"])
    assert plan.tasks == own.tasks


def test_a_sandbox_that_is_a_link_is_judged_by_what_it_led_to(repository: GitRepository) -> None:
    repository.write("fixtures/box/files/notes.txt", "hello")
    (repository.path / "suites/_shared/sandboxes").mkdir(parents=True)
    (repository.path / "suites/_shared/sandboxes/box").symlink_to("../../../fixtures/box")
    write_task(repository.path / "suites/golden/b.yaml", task_id="b", environment={"sandbox": "box"})
    own = plan_on_main(repository)
    repository.write("fixtures/box/files/notes.txt", "the answer is y")
    plan = planned()
    assert (plan.base.judged_by, edits_of(plan)) == ("base", ["fixtures/box/files/notes.txt"])
    assert plan.tasks == own.tasks


def test_replies_of_the_judge_are_those_of_the_merge_base(repository: GitRepository) -> None:
    recorded = "judge: {recorded: ../replies}\n"
    plan_on_main(repository, {"gates.yaml": gates(rest=recorded), "replies/a.yaml": "replies: []\n"})
    new = "replies: [{fingerprint: a, reply: b}]\n"
    repository.write("replies/a.yaml", new)
    plan = planned()
    assert (plan.base.judged_by, edits_of(plan)) == ("base", ["replies/a.yaml"])
    replies = Path(plan.suites_folder) / "../replies/a.yaml"
    assert replies.read_text() == "replies: []\n"
    repository.git("rm", "--quiet", "-rf", "replies")
    repository.write("gates.yaml", gates())
    plan = planned()
    assert plan.base.judged_by == "base"
    assert [edit.path for edit in plan.base.edits] == ["gates.yaml", "replies/a.yaml"]
    assert (Path(plan.suites_folder) / "../replies/a.yaml").read_text() == "replies: []\n"


def test_a_folder_that_holds_the_suites_is_not_judged_by_as_a_whole(repository: GitRepository) -> None:
    grader = {**GRADER, "command": ["python3", "../..", "."]}
    plan_on_main(repository, {"suites/golden/x.eval.yaml": suite(grader), "__main__.py": "1", "agent.py": "1"})
    repository.write("agent.py", "2")
    assert is_judged_by_itself(planned())
    repository.write("__main__.py", "2")
    assert edits_of(planned()) == ["__main__.py"]
