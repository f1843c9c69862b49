"""Run one trial of a task, given by its file or its name, and record nothing."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from passgate.tasks.errors import InputError, UsageError
from passgate.tasks.execution.resources import open_resources
from passgate.tasks.execution.trial import run_trial
from passgate.tasks.formats.folder import find_suites_folder
from passgate.tasks.formats.loading import load_paths, load_prices, policy_or_default, refuse_what_cannot_run
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.planning.named_agents import find_agent


def try_task(
    named: Path, task_id: str | None, agent: str, gates: Path, suites: Path
) -> Coroutine[Any, Any, FinishedTrial]:
    """Return a coroutine that runs one trial of a file's or a named task. Raise `InputError` or `UsageError`."""
    policy = policy_or_default(gates)
    if named.is_file():
        suites, task = find_suites_folder(named), _task_in_file(named, task_id, policy)
    else:
        task = task_in_suites(str(named), suites, policy)
    return one_trial(task, find_agent(agent, gates, suites), gates, suites, policy)


async def one_trial(
    task: EvalTask, agent: AgentSpec, gates: Path, suites: Path, policy: Policy, needs_price: str | None = None
) -> FinishedTrial:
    """Run one trial. `needs_price` says why an unknown price is an error. Raise `InputError`, `UsageError`."""
    prices = load_prices(gates)
    # No retries, so that the user sees the first error at once.
    opened = open_resources(
        agent, suites, policy, prices=prices, cost_cap=CostCap(), error_retries=0, needs_price=needs_price, tasks=[task]
    )
    async with opened as resources:
        return await run_trial(task, 0, resources)


def _task_in_file(file: Path, task_id: str | None, policy: Policy) -> EvalTask:
    """Return the task with an id or with the end of an id; without an id, the only task of the file."""
    loaded = load_paths([file], policy)
    if loaded.problems:
        raise InputError(loaded.problems)
    ids, found = [task.task_id for task in loaded.tasks], list(loaded.tasks)
    if task_id is None and len(found) != 1:
        raise UsageError(f"{file} has {len(ids)} tasks: choose one with --task; known: {', '.join(ids)}")
    if task_id is not None:
        found = [task for task in loaded.tasks if task.task_id == task_id]
        found = found or [task for task in loaded.tasks if task.task_id.endswith(f"/{task_id}")]
        if len(found) != 1:
            raise UsageError(f"{file} has {'several tasks' if found else 'no task'} {task_id!r}{nearest(task_id, ids)}")
    refuse_what_cannot_run(found, loaded)
    return found[0]


def task_in_suites(name: str, suites: Path, policy: Policy) -> EvalTask:
    """Return the task with a name. Raise `InputError` with the problems of the file of that name. Ignore problems of
    other tasks, because their authors may be editing them.
    """
    if not suites.is_dir():
        raise UsageError(f"no task file {name}, and no suites folder {suites} with a task of this name")
    loaded = load_paths([suites], policy)
    found = [task for task in loaded.tasks if name in {task.name, task.task_id}]
    if not found:
        own = [problem for problem in loaded.problems if Path(problem.file).stem == name.rpartition("/")[2]]
        if own:
            raise InputError(own)
        names = [task.name for task in loaded.tasks]
        raise UsageError(f"no task file {name}, and no task {name!r} in {suites}{nearest(name, names)}")
    refuse_what_cannot_run(found, loaded)
    return found[0]
