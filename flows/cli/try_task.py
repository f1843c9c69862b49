"""`passgate try`: one trial of one task, with everything that was said, for authors of tasks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli.options import AgentOption, GatesOption

if TYPE_CHECKING:
    from passgate.tasks.model.task import EvalTask
    from passgate.tasks.model.trial import FinishedTrial


def try_task(
    file: Annotated[Path, typer.Argument(metavar="TASK", help="The task's file.", show_default=False)],
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="ID", help="Which of a file's tasks; needed where it has several."),
    ] = None,
    agent: AgentOption = "oracle",
    gates: GatesOption = "gates.yaml",
) -> int:
    """Run one trial of one task and print its transcript and grades. Nothing is recorded."""
    from passgate.flows.cli.terminal import color, say, width
    from passgate.flows.interrupts import until_ended
    from passgate.tasks.errors import UsageError
    from passgate.tasks.reports.trial import trial_report

    if not file.is_file():
        raise UsageError(f"no task file {file}")
    finished = until_ended(_try(file, task, agent, gates))
    say(trial_report(finished, width=width(), color=color()))
    return _exit_code(finished)


async def _try(file: Path, task_id: str | None, agent_text: str, gates: str) -> "FinishedTrial":
    from passgate.tasks.budgets.purse import Purse
    from passgate.tasks.errors import InputError
    from passgate.tasks.find import find_agent
    from passgate.tasks.formats.discover import suites_folder_of
    from passgate.tasks.load import load_paths, load_prices, policy_or_default, refuse_what_cannot_run
    from passgate.tasks.run import open_bench, run_trial

    policy = policy_or_default(Path(gates))
    prices = load_prices(Path(gates))
    loaded = load_paths([file], policy)
    if loaded.problems:
        raise InputError(loaded.problems)
    task = _chosen(loaded.tasks, task_id, file)
    refuse_what_cannot_run([task], loaded)
    suites = suites_folder_of(file)
    agent = find_agent(agent_text, Path(gates), suites)
    async with open_bench(agent, suites, policy, prices=prices, purse=Purse(), error_retries=0) as bench:
        return await run_trial(task, 0, bench)


def _chosen(tasks: "tuple[EvalTask, ...]", task_id: str | None, file: Path) -> "EvalTask":
    """The task of an id, also by the end of it; the only one where no id is given. Raises `UsageError`."""
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

    match finished.trial.status:
        case TrialStatus.PASSED:
            return ExitCode.PASS
        case TrialStatus.FAILED:
            return ExitCode.FAIL
        case _:
            return ExitCode.INCONCLUSIVE
