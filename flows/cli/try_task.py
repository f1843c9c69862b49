"""`passgate try`: run one trial of one task and print everything, for authors of tasks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli.options import AgentOption, GatesOption, SuitesOption, named_path

if TYPE_CHECKING:
    from passgate.tasks.model.policy import Policy
    from passgate.tasks.model.task import EvalTask
    from passgate.tasks.model.trial import FinishedTrial


def try_task(
    named: Annotated[
        Path,
        typer.Argument(
            metavar="TASK",
            help="The task's file, or its name as reports print it: golden/action-items_1.",
            parser=named_path,
            show_default=False,
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="ID", help="One task of the file. Required if the file has several."),
    ] = None,
    agent: AgentOption = "oracle",
    suites: SuitesOption = "suites",
    gates: GatesOption = "gates.yaml",
) -> int:
    """Run one trial of one task and print the transcript and the grades. Record nothing."""
    from passgate.flows.cli.terminal import color, say, width
    from passgate.flows.process.interrupts import until_ended
    from passgate.tasks.formats.discover import suites_folder_of
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.reports.trial import trial_report

    policy = policy_or_default(Path(gates))
    if named.is_file():
        folder, chosen = suites_folder_of(named), _task_of_file(named, task, policy)
    else:
        folder, chosen = Path(suites), _task_of_suites(str(named), Path(suites), policy)
    finished = until_ended(_try(chosen, folder, agent, Path(gates), policy))
    say(trial_report(finished, width=width(), color=color()))
    return _exit_code(finished)


async def _try(task: "EvalTask", suites: Path, agent_text: str, gates: Path, policy: "Policy") -> "FinishedTrial":
    from passgate.tasks.execution.resources import open_resources
    from passgate.tasks.execution.trial import run_trial
    from passgate.tasks.formats.loading import load_prices
    from passgate.tasks.grade import grade
    from passgate.tasks.metering.cost_cap import CostCap
    from passgate.tasks.planning.named_agents import find_agent

    prices = load_prices(gates)
    agent = find_agent(agent_text, gates, suites)
    async with open_resources(
        agent, suites, policy, grade=grade, prices=prices, cost_cap=CostCap(), error_retries=0
    ) as bench:
        return await run_trial(task, 0, bench)


def _task_of_file(file: Path, task_id: str | None, policy: "Policy") -> "EvalTask":
    """Return the task of a file. Raise `InputError` if the file has problems, `UsageError` if no task is chosen."""
    from passgate.tasks.errors import InputError
    from passgate.tasks.formats.loading import load_paths, refuse_what_cannot_run

    loaded = load_paths([file], policy)
    if loaded.problems:
        raise InputError(loaded.problems)
    task = _chosen(loaded.tasks, task_id, file)
    refuse_what_cannot_run([task], loaded)
    return task


def _task_of_suites(name: str, suites: Path, policy: "Policy") -> "EvalTask":
    """Find a task by the name that reports print. Ignore problems of other tasks. Raise `UsageError`."""
    from passgate.tasks.errors import UsageError
    from passgate.tasks.formats.loading import load_paths, refuse_what_cannot_run
    from passgate.tasks.formats.schema_check import nearest

    if not suites.is_dir():
        raise UsageError(f"no task file {name}, and no suites folder {suites} with a task of this name")
    loaded = load_paths([suites], policy)
    found = [task for task in loaded.tasks if name in {task.name, task.task_id}]
    if not found:
        names = [task.name for task in loaded.tasks]
        raise UsageError(f"no task file {name}, and no task {name!r} in {suites}{nearest(name, names)}")
    refuse_what_cannot_run(found, loaded)
    return found[0]


def _chosen(tasks: "tuple[EvalTask, ...]", task_id: str | None, file: Path) -> "EvalTask":
    """Find a task by its id or the end of its id; without an id, take the only task. Raise `UsageError`."""
    from passgate.tasks.errors import UsageError
    from passgate.tasks.formats.schema_check import nearest

    ids = [task.task_id for task in tasks]
    if task_id is None and len(tasks) == 1:
        return tasks[0]
    if task_id is None:
        raise UsageError(f"{file} has {len(tasks)} tasks: choose one with --task; known: {', '.join(ids)}")
    found = [task for task in tasks if task.task_id == task_id]
    found = found or [task for task in tasks if task.task_id.endswith(f"/{task_id}")]
    if len(found) != 1:
        raise UsageError(f"{file} has {'several tasks' if found else 'no task'} {task_id!r}{nearest(task_id, ids)}")
    return found[0]


def _exit_code(finished: "FinishedTrial") -> int:
    from passgate.tasks.errors import ExitCode
    from passgate.tasks.model.trial import TrialStatus

    if finished.has_not_started:
        return ExitCode.BAD_INPUT
    match finished.trial.status:
        case TrialStatus.PASSED:
            return ExitCode.PASS
        case TrialStatus.FAILED:
            return ExitCode.FAIL
        case _:
            return ExitCode.INCONCLUSIVE
