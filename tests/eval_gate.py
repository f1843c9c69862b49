"""A gate on eval files from loading to ruling, without Prefect: what tests of other tools' formats go through."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.execution.resources import Standstills, TrialResources
from passgate.tasks.execution.trial import run_trial
from passgate.tasks.formats.loading import load_tasks
from passgate.tasks.gates.decide import Ruling, rule_on
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.grade import JudgeReply, JudgeRequest, LlmJudge
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.task import EvalTask, GateName
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.sandboxes.workbench import Workbench
from passgate.tasks.stats.measurement import measure_trials
from tests.builders import SHIPPED, a_plan
from tests.function_agent import FunctionAgent
from tests.project import Project

Answer = Callable[[Attempt], Any]


def says(answer: Any) -> Answer:
    """An agent that always answers the same: a text, or a transcript as a mapping."""
    return lambda attempt: answer


def crashes(attempt: Attempt) -> str:
    """An agent that breaks."""
    raise RuntimeError("scripted crash")


class SaysAlways:
    """A judge with one reply for everything."""

    name = "fixed"
    votes = 1

    def __init__(self, reply: Any) -> None:
        self._reply = json.dumps(reply)

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        return JudgeReply(text=self._reply)

    async def close(self) -> None:
        """Nothing is held."""


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """A repository with these files; its suites folder."""
    (folder / ".git").mkdir()
    for name, text in files.items():
        Project(folder).write(name, text)
    return folder


async def trials_of_files(
    folder: Path, files: Mapping[str, str], agent: Answer, *, judge: LlmJudge | None = None, k: int | None = 1
) -> tuple[tuple[EvalTask, ...], list[FinishedTrial]]:
    """Every test of the files run and graded; k times each, or as often as the files say with `None`."""
    suites = write_files(folder, files)
    tasks = tuple(task if k is None else task.model_copy(update={"k": k}) for task in load_tasks(suites, SHIPPED))
    with Workbench(suites, processes=2) as workbench:
        bench = TrialResources(
            agent=FunctionAgent(agent),
            workbench=workbench,
            meter=None,
            cost_cap=CostCap(),
            judge=judge,
            suites_folder=suites,
            masker=Masker(()),
            error_retries=0,
            standstills=Standstills(),
        )
        return tasks, [await run_trial(task, trial, bench) for task in tasks for trial in range(task.k)]


async def gate_of_files(
    folder: Path, files: Mapping[str, str], agent: Answer, *, judge: LlmJudge | None = None, k: int | None = 1
) -> Ruling:
    """What the merge gate rules on the tests of these files."""
    tasks, finished = await trials_of_files(folder, files, agent, judge=judge, k=k)
    measured = measure_trials(tasks, [one.trial for one in finished])
    return rule_on(a_plan(*tasks), SHIPPED.gates[GateName.CI_MERGE], measured, Baseline(branch="main", young="block"))
