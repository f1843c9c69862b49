"""`passgate show`: print tasks the way passgate runs them, or a recorded trial of a run."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from passgate.flows.cli import options
from passgate.flows.cli.completion import complete_runs, complete_tasks

if TYPE_CHECKING:
    from passgate.tasks.model.policy import Policy
    from passgate.tasks.model.task import EvalTask

_SUITES: Final = Path("suites")


class ShowFormat(StrEnum):
    """The formats of what is shown."""

    TEXT = "text"
    JSON = "json"


def show(
    named: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Task files, eval files, folders that contain them, names of tasks. With --task: a run, or `last`.",
            autocompletion=complete_runs,
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(
            metavar="TASK",
            help="Show a trial of this task of the run: golden/say-yes, or its task_id.",
            autocompletion=complete_tasks,
        ),
    ] = None,
    trial: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="The number of the trial. Default: the first that did not pass."),
    ] = None,
    gates: options.GatesOption = "gates.yaml",
    output_format: Annotated[ShowFormat, typer.Option("--format", help="`text` or `json`.")] = ShowFormat.TEXT,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Print the tasks of files in one form, with names resolved and the defaults of the suite. With --task, print the
    transcript and the grades of a recorded trial.
    """
    from passgate.flows.cli.terminal import say

    as_json = as_json or output_format is ShowFormat.JSON
    if task is None and trial is None:
        shown = _tasks(named, gates, as_json=as_json)
    else:
        shown = _trial(named, task, trial, as_json=as_json)
    if as_json or not quiet:
        say(shown)
    return 0


def _tasks(named: list[str], gates: str, *, as_json: bool) -> str:
    from passgate.flows.cli.task_files import read_tasks
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.reports.tasks import tasks_as_json, tasks_as_yaml

    policy = policy_or_default(Path(gates))
    paths = [name for name in named if not name or Path(name).exists() or not _SUITES.is_dir()]
    for name in paths:
        _refuse_run(name)
    tasks = list(read_tasks([options.named_path(name) for name in paths], policy).tasks) if paths else []
    tasks += [_task_named(name, policy) for name in named if name not in paths]
    return tasks_as_json(tasks) if as_json else tasks_as_yaml(tasks)


def _task_named(name: str, policy: "Policy") -> "EvalTask":
    """Find a task by its name. Raise `UsageError` for a name that no task has."""
    from passgate.tasks.commands.try_task import task_in_suites
    from passgate.tasks.errors import UsageError

    try:
        return task_in_suites(name, _SUITES, policy)
    except UsageError:
        _refuse_run(name)
        raise


def _refuse_run(name: str) -> None:
    """Raise `UsageError` for what is the name of a run and of no file."""
    from passgate.tasks.errors import PassgateError, UsageError
    from passgate.tasks.planning.find_run import find_run

    if not name or Path(name).exists():
        return
    try:
        run = find_run(name)
    except PassgateError:
        return
    raise UsageError(f"{name} is not a file, but the run {run}: name a task of it with --task")


def _trial(named: list[str], task: str | None, trial: int | None, *, as_json: bool) -> str:
    from passgate.flows.cli.terminal import color, width
    from passgate.tasks.commands.show import recorded_trial
    from passgate.tasks.errors import UsageError
    from passgate.tasks.planning.find_run import find_run
    from passgate.tasks.reports.terminal_trial import trial_report
    from passgate.tasks.reports.trial import trial_as_json

    if task is None:
        raise UsageError("--trial needs the task: passgate show RUN --task TASK --trial N")
    if len(named) != 1:
        raise UsageError(f"--task needs one run and not {len(named)} names: passgate show RUN --task TASK")
    found = recorded_trial(find_run(named[0]), task, trial)
    if as_json:
        return trial_as_json(found.run_id, found.finished)
    return trial_report(
        found.finished, run_id=found.run_id, kept=found.kept, command=found.command, width=width(), color=color()
    )
