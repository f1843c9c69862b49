"""A blocking task with a grader that cannot fail is refused before anything is run."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.errors import InputError
from passgate.tasks.formats.loading import load_tasks
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.run import Revision, RunRequest
from passgate.tasks.model.task import EvalTask, GateName, Suite
from passgate.tasks.planning.plan import make_plan
from passgate.tasks.planning.requirements import problems_at_gates, problems_of, refuse_graders_that_cannot_fail
from tests.builders import REPOSITORY, SAYS_YES, SHIPPED, a_task, write_task

EMPTY = {"type": "output_check", "name": "answer", "matches": ".*"}


def gate(*rules: Rule) -> GatePolicy:
    return SHIPPED.gates[GateName.CI_MERGE].model_copy(update={"blocks_on": rules})


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(**changes: Any) -> tuple[EvalTask, ...]:
    write_task(Path("suites/golden/say-yes.yaml"), **changes)
    return load_tasks(Path("suites"), SHIPPED)


def test_the_problem_stands_at_the_grader_and_says_why_and_what_to_do() -> None:
    tasks = loaded(graders=[SAYS_YES, EMPTY])
    lines = Path("suites/golden/say-yes.yaml").read_text(encoding="utf-8").splitlines()
    (problem,) = problems_of(tasks, gate(Rule.TASK_FAILED))
    assert (problem.file, problem.path) == ("suites/golden/say-yes.yaml", "graders[1]")
    assert "matches" in lines[problem.line - 1]
    assert problem.message == (
        "the grader 'answer' cannot fail: every answer matches '.*'; say what must be so, or take it out"
    )


def test_it_matters_where_a_failed_task_blocks() -> None:
    task = a_task(graders=[EMPTY])
    for rule in (Rule.TASK_FAILED, Rule.GOLDEN_REGRESSION, Rule.SAFETY_VIOLATION, Rule.FORBIDDEN_TOOL, Rule.THRESHOLD):
        with pytest.raises(InputError, match="cannot fail"):
            refuse_graders_that_cannot_fail([task], gate(rule))
    for rules in ((), (Rule.LATENCY,), (Rule.COST,), (Rule.SIGN_OFF,)):
        refuse_graders_that_cannot_fail([task], gate(*rules))


def test_every_grader_of_every_task_is_told_at_once() -> None:
    tasks = [a_task(task_id=name, graders=[EMPTY, SAYS_YES, EMPTY]) for name in ("a", "b")]
    assert len(problems_of(tasks, gate(Rule.TASK_FAILED))) == 4


def test_a_test_of_an_eval_file_is_named_for_its_line_is_all_that_is_known() -> None:
    Path("suites/golden").mkdir(parents=True)
    Path("suites/golden/e.eval.yaml").write_text(
        "tests:\n  - id: one\n    input: x\n    assertions: [{type: contains, value: x}]\n"
        "  - id: two\n    input: x\n    assertions: [{type: regex, value: '.*'}]\n",
        encoding="utf-8",
    )
    (problem,) = problems_of(load_tasks(Path("suites"), SHIPPED), gate(Rule.TASK_FAILED))
    assert (problem.file, problem.line, problem.path) == ("suites/golden/e.eval.yaml", 5, "graders")
    assert problem.message.startswith("two: this task cannot fail: no trial has less than 1")


def test_a_run_is_refused_before_it_begins() -> None:
    loaded(graders=[EMPTY])
    Path("gates.yaml").write_bytes((REPOSITORY / "gates.yaml").read_bytes())
    plan = partial(make_plan, request=RunRequest(), agent=AgentSpec(kind=AgentKind.NOP), revision=Revision())
    assert plan(GateName.NIGHTLY)
    with pytest.raises(InputError, match="cannot fail"):
        plan(GateName.CI_MERGE)


@pytest.mark.parametrize("folder", ["suites", "flows/cli/scaffold/suites", "flows/cli/scaffold/plain/suites"])
def test_no_shipped_grader_is_one(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    tasks = load_tasks(Path(folder), SHIPPED)
    assert tasks
    assert all(problems_of(tasks, policy) == [] for policy in SHIPPED.gates.values())


def test_at_several_gates_a_problem_is_told_once_and_only_of_tasks_that_one_of_them_runs() -> None:
    tasks = loaded(graders=[SAYS_YES, EMPTY])
    assert len(problems_at_gates(tasks, SHIPPED)) == 1
    adversarial = SHIPPED.gates[GateName.CI_MERGE].model_copy(update={"suites": (Suite.ADVERSARIAL,)})
    assert problems_at_gates(tasks, SHIPPED.model_copy(update={"gates": {GateName.CI_MERGE: adversarial}})) == []
