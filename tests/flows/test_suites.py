"""Every shipped task is proved: its reference solution passes, doing nothing fails, so does every counterexample."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from passgate.tasks.agents import parse_agent
from passgate.tasks.formats.loading import load_tasks
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.agent import Endpoint
from passgate.tasks.model.policy import JudgePolicy, Policy
from passgate.tasks.model.task import EvalTask, GateName, Suite
from passgate.tasks.model.trial import Trial, TrialStatus
from tests.builders import SHIPPED
from tests.flows.recorded_models import play, read_reference
from tests.flows.trials import trial_of
from tests.project import REPOSITORY
from tests.scenarios import Scenarios
from tests.scenarios.shipped import nothing_done, release
from tests.upstream import ScriptedUpstream

SUITES = REPOSITORY / "suites"
TASKS = load_tasks(SUITES, SHIPPED)
MERGE_GATE = SHIPPED.gates[GateName.CI_MERGE]
OTHERS = [task for task in TASKS if task.suite not in MERGE_GATE.suites or GateName.CI_MERGE not in task.gates]
"""The tasks that the merge gate leaves out."""
SEED_TASKS = {
    "fix-auth-bypass_1": (Suite.GOLDEN, 3, "pass^k", 20),
    "prompt-injection_tool-misuse_1": (Suite.ADVERSARIAL, 10, "pass^k", 8),
    "support-chat_resolution_1": (Suite.OPEN_ENDED, 5, "pass@k", 12),
    "incident-2026-01-xx_looping-retries_1": (Suite.FAILURE_REPLAYS, 5, "pass^k", 10),
}


@pytest.fixture(autouse=True)
def no_judge_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PASSGATE_JUDGE_BASE_URL", raising=False)
    monkeypatch.delenv("PASSGATE_JUDGE_MODEL", raising=False)


def tried(task: EvalTask, agent: str, policy: Policy = SHIPPED) -> Trial:
    """One trial of a task by an agent."""
    return asyncio.run(trial_of(parse_agent(agent), task, SUITES, policy=policy)).trial


def wrong_solutions() -> Iterator[object]:
    for task in TASKS:
        assert task.reference is not None
        for counterexample in task.reference.counterexamples:
            yield pytest.param(task, counterexample.name, id=f"{task.task_id}:{counterexample.name}")


@pytest.mark.slow
def test_every_reference_solution_passes(scenario: Scenarios) -> None:
    (folder,) = scenario(release).run_folders()
    trials = RunStore(str(folder)).read_trials()
    assert {trial.task_id: trial.reason for trial in trials if trial.status is not TrialStatus.PASSED} == {}
    assert {trial.task_id for trial in trials} == {task.task_id for task in TASKS}


@pytest.mark.slow
def test_doing_nothing_fails_every_task_of_the_merge_gate(scenario: Scenarios) -> None:
    (folder,) = scenario(nothing_done).run_folders()
    trials = RunStore(str(folder)).read_trials()
    assert {trial.task_id: trial.reason for trial in trials if trial.status is not TrialStatus.FAILED} == {}
    assert {trial.task_id for trial in trials} == {task.task_id for task in TASKS if task not in OTHERS}


@pytest.mark.slow
@pytest.mark.parametrize("task", OTHERS, ids=lambda task: task.task_id)
def test_doing_nothing_fails_the_other_tasks(task: EvalTask) -> None:
    trial = tried(task, "nop")
    assert trial.status is TrialStatus.FAILED, trial.reason


@pytest.mark.slow
@pytest.mark.parametrize(("task", "name"), list(wrong_solutions()))
def test_a_wrong_solution_fails(task: EvalTask, name: str) -> None:
    trial = tried(task, f"oracle:{name}")
    assert trial.status is TrialStatus.FAILED, trial.reason


@pytest.mark.parametrize("task", [task for task in TASKS if task.tools], ids=lambda task: task.task_id)
def test_an_agent_with_the_tools_of_a_task_can_do_it(task: EvalTask, upstream: ScriptedUpstream) -> None:
    upstream.script = play({task.inputs["prompt"]: read_reference(task, is_solution=True)})
    model = parse_agent("openai:m").model_copy(
        update={"upstreams": {"openai": Endpoint(base_url=upstream.openai_base_url)}}
    )
    finished = asyncio.run(trial_of(model, task, SUITES))
    # Recorded replies of the judge are of the references, whose tools answer a little otherwise.
    grades = [grade for grade in finished.trial.grades if grade.type != "llm_rubric"]
    assert [(grade.name, grade.message) for grade in grades if not grade.passed] == []
    assert {call.tool for call in finished.transcript.tool_calls} <= {tool.name for tool in task.tools}


@pytest.mark.parametrize("suite", list(Suite))
def test_each_suite_has_at_least_five_tasks_with_a_counterexample(suite: Suite) -> None:
    tasks = [task for task in TASKS if task.suite is suite]
    assert len(tasks) >= 5
    assert all(task.reference is not None and task.reference.counterexamples for task in tasks)


@pytest.mark.parametrize("task_id", SEED_TASKS)
def test_the_first_task_of_each_suite_is_as_it_was_asked_for(task_id: str) -> None:
    task = next(task for task in TASKS if task.task_id == task_id)
    assert (task.suite, task.k, str(task.metric), task.budgets.max_steps) == SEED_TASKS[task_id]
    assert Path(task.file).name == f"{task_id}.yaml"


def test_without_a_judge_rubrics_are_errors_that_name_the_setting() -> None:
    task = next(task for task in TASKS if task.task_id == "support-chat_resolution_1")
    trial = tried(task, "oracle", SHIPPED.model_copy(update={"judge": JudgePolicy()}))
    assert trial.status is TrialStatus.ERROR
    assert "PASSGATE_JUDGE_BASE_URL" in trial.reason
