"""`passgate try`: run one trial of one task and print everything, for authors of tasks."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli import options
from passgate.flows.cli.completion import complete_tasks


def try_task(
    named: Annotated[
        Path,
        typer.Argument(
            metavar="TASK",
            help="The task's file, or its name as reports print it: golden/action-items_1.",
            parser=options.named_path,
            autocompletion=complete_tasks,
        ),
    ],
    task: Annotated[
        str | None, typer.Option(metavar="ID", help="One task of the file. Required if the file has several.")
    ] = None,
    agent: options.AgentOption = "oracle",
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Run one trial of one task and print the transcript and the grades. Record nothing."""
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import color, width
    from passgate.flows.process.interrupts import until_ended
    from passgate.tasks.commands.try_task import try_task as run_one_trial
    from passgate.tasks.errors import ExitCode
    from passgate.tasks.model.trial import TrialStatus
    from passgate.tasks.reports.terminal_trial import trial_report

    finished = until_ended(run_one_trial(named, task, agent, Path(gates), Path(suites)))
    answer(
        lambda: trial_report(finished, width=width(), color=color()),
        lambda: finished,
        as_json=as_json,
        quiet=quiet,
    )
    if finished.has_not_started:
        return ExitCode.BAD_INPUT
    codes = {TrialStatus.PASSED: ExitCode.PASS, TrialStatus.FAILED: ExitCode.FAIL}
    return codes.get(finished.trial.status, ExitCode.INCONCLUSIVE)
