"""From what a gate is asked and its files to the plan of a run."""

from pathlib import Path
from typing import Any

import pytest

from passgate import __version__
from passgate.tasks.errors import InputError, UsageError
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.run import Plan, Revision, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.planning.plan import make_plan
from tests.builders import SHIPPED
from tests.unit.suite_files import add, add_all, begin_project

AGENT = AgentSpec(kind=AgentKind.NOP)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a suites folder and the shipped gates."""
    monkeypatch.chdir(tmp_path)
    return begin_project(tmp_path)


def plan(gate: GateName = GateName.CI_MERGE, run_id: str = "", **request: Any) -> Plan:
    revision = Revision(commit="c0ffee")
    return make_plan(gate, RunRequest(**request), AGENT, revision=revision, run_id=run_id)


def ids(planned: Plan) -> list[str]:
    return [task.task_id for task in planned.tasks]


EVAL = """
tests:
  - {id: one, input: Hi, criteria: Is kind.}
  - {id: two, input: Hi, criteria: Is kind., assert: [{type: llm_judge, prompt: ./gone.md}]}
"""


def write_eval(name: str, text: str) -> None:
    file = Path("suites/golden", name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_a_plan_holds_what_a_run_needs(project: Path) -> None:
    assert plan().tasks == (), "the verdict will say that there is no evidence"
    add("golden/a")
    made = plan()
    assert made.suites_folder == str(project / "suites")
    assert (made.gate, made.agent, made.policy) == (GateName.CI_MERGE, AGENT, SHIPPED)
    assert (made.revision.commit, made.passgate_version) == ("c0ffee", __version__)
    assert made.run_id.startswith(f"{made.created_at:%Y%m%dT%H%M%SZ}-ci_merge-")
    assert made.created_at.utcoffset() is not None
    assert plan().run_id != made.run_id
    Path("suites").rename("evals")
    assert plan(suites="evals").suites_folder == str(project / "evals")


def test_a_run_with_an_id_of_its_own_is_of_the_day_that_the_id_says() -> None:
    made = plan(run_id="20260131T235959Z-ci_merge-0a0b0c0d")
    assert (made.run_id, made.day) == ("20260131T235959Z-ci_merge-0a0b0c0d", "2026-01-31")


def test_a_gate_takes_the_tasks_of_its_suites_that_do_not_opt_out() -> None:
    add_all("golden/a", "open_ended/b", "failure_replays/c", "adversarial/d")
    add("golden/nightly", gates={"ci_merge_gate": False})
    add("golden/merge", gates={"nightly": False, "release_candidate": False})
    assert ids(plan()) == ["d", "c", "a", "merge"]
    assert ids(plan(GateName.NIGHTLY)) == ids(plan(GateName.RELEASE_CANDIDATE)) == ["d", "c", "a", "nightly", "b"]


@pytest.mark.parametrize(
    ("pattern", "selected"),
    [
        *(("fix-login", ["fix-login"]), ("golden/fix-login", ["fix-login"]), ("fix-*", ["fix-login", "fix-logout"])),
        *(("golden/*", ["fix-login", "fix-logout"]), ("*/attack", ["attack"])),
        *(("*", ["attack", "fix-login", "fix-logout"]), ("fix-log?n", ["fix-login"])),
    ],
)
def test_a_pattern_selects_tasks_and_the_others_are_counted(pattern: str, selected: list[str]) -> None:
    add_all("golden/fix-login", "golden/fix-logout", "adversarial/attack", "open_ended/talk")
    made = plan(task=pattern)
    assert ids(made) == selected
    assert made.unselected == 3 - len(selected)


@pytest.mark.parametrize("pattern", ["fix", "FIX-LOGIN", "open_ended/*", "suites/golden/*", ""])
def test_a_pattern_that_selects_nothing_is_refused(pattern: str) -> None:
    add_all("golden/fix-login", "open_ended/talk")
    with pytest.raises(UsageError, match="no task of ci_merge matches --task"):
        plan(task=pattern)


def test_another_k_stands_in_place_of_every_tasks_own() -> None:
    add("golden/a", trials={"k": 7})
    add("adversarial/b")
    assert [task.k for task in plan().tasks] == [10, 7]
    assert [task.k for task in plan(k=2).tasks] == [2, 2]


def test_a_gate_that_the_policy_does_not_have_is_refused() -> None:
    Path("gates.yaml").write_text(
        "suites: {golden: {k: 1, metric: pass^k, max_steps: 1}}\ngates: {nightly: {suites: [golden]}}\n"
    )
    with pytest.raises(UsageError, match=r"gates\.yaml has no gate ci_merge; it has nightly"):
        plan()


def test_a_run_with_a_task_that_cannot_be_run_is_refused_with_every_place() -> None:
    write_eval("chat.eval.yaml", EVAL)
    with pytest.raises(InputError) as caught:
        plan()
    assert [str(problem) for problem in caught.value.problems] == [
        "suites/golden/chat.eval.yaml:4:81: tests[1].assert[0].prompt: no file './gone.md'"
    ]
    assert ids(plan(task="chat/one")) == ["chat/one"]


def test_without_a_gates_file_a_run_has_the_shipped_policy_and_says_so(project: Path) -> None:
    add("golden/a")
    assert plan().shipped_policy is False
    (project / "gates.yaml").unlink()
    made = plan()
    assert (made.shipped_policy, made.policy) == (True, SHIPPED)
    with pytest.raises(UsageError, match=r"no gates file other\.yaml"):
        plan(gates="other.yaml")


def test_a_plan_has_the_warnings_of_its_files() -> None:
    write_eval("chat/EVAL.yaml", "tests: [{id: a, criteria: c, input: 'Say ${{ NOT_SET_ANYWHERE }}hi'}]\n")
    (warning,) = plan().warnings
    assert warning.startswith("suites/golden/chat/EVAL.yaml:1:")
    assert "NOT_SET_ANYWHERE" in warning


def test_one_trial_has_no_confidence_interval() -> None:
    repeat = "run: {repeat: {count: 3, strategy: confidence_interval}}"
    write_eval("chat/EVAL.yaml", f"{{{repeat}, tests: [{{id: a, criteria: c, input: hi}}]}}\n")
    assert plan(k=2).tasks[0].k == 2
    with pytest.raises(UsageError, match="--k 1 is too few for chat/a: a confidence interval needs two trials"):
        plan(k=1)
