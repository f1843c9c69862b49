"""Try an agent: its name in, one trial of one task and what is well with it out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from passgate.tasks.agents.starts import START_REMEDY
from passgate.tasks.errors import PassgateError, UsageError
from passgate.tasks.execution.resources import open_resources
from passgate.tasks.execution.trial import run_trial
from passgate.tasks.formats.loading import load_folder, load_prices, policy_of_run
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.checks import State, Symptom
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.model.transcript import EndReason
from passgate.tasks.model.trial import MEASURED, FinishedTrial
from passgate.tasks.planning.named_agents import find_agent

_NOT_MEASURED: Final = "this trial says nothing of the agent: mend what the reason names"
_CRASHED: Final = "the agent starts and does not come to its end: look at the trial below"


async def try_agent(name: str, gates: Path, suites: Path) -> tuple[Symptom, FinishedTrial | None]:
    """Run one trial of an agent, of a golden task where there is one. Nothing is recorded.

    Gives what is to be said of the trial, and the trial; `None` when there could be none.
    """
    try:
        finished = await _trial(name, gates, suites)
    except PassgateError as error:
        return _symptom(name, State.FAILED, str(error)), None
    trial = finished.trial
    found = f"{trial.suite}/{trial.task_id} {trial.status}" + (f": {trial.reason}" if trial.reason else "")
    state, remedy = _judged(finished)
    return _symptom(name, state, found, remedy), finished


async def _trial(name: str, gates: Path, suites: Path) -> FinishedTrial:
    agent = find_agent(name, gates, suites)
    policy, _ = policy_of_run(gates)
    task = _first_to_run(load_folder(suites, policy).tasks)
    prices = load_prices(gates)
    async with open_resources(agent, suites, policy, prices=prices, cost_cap=CostCap(), error_retries=0) as bench:
        return await run_trial(task, 0, bench)


def _first_to_run(tasks: Sequence[EvalTask]) -> EvalTask:
    runnable = [task for task in tasks if not task.cannot_run]
    if not runnable:
        raise UsageError("there is no task that can be run: name the folder of the suites with --suites")
    return min(runnable, key=lambda task: list(Suite).index(task.suite))


def _judged(finished: FinishedTrial) -> tuple[State, str]:
    """How well it is with an agent that had this trial, and what to do."""
    if finished.has_not_started:
        return State.FAILED, START_REMEDY
    if finished.trial.status not in MEASURED:
        return State.FAILED, _NOT_MEASURED
    if finished.transcript.end is EndReason.CRASHED:
        return State.WARNING, _CRASHED
    return State.OK, ""


def _symptom(name: str, state: State, found: str, remedy: str = "") -> Symptom:
    return Symptom(subject=f"agent {name}", what="trial", state=state, found=found, remedy=remedy)
