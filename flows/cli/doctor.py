"""`passgate doctor`: find what keeps a run from working before you start it."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli import options


def doctor(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="AGENT", help="Agents, as for --agent. Default: every agent with a name."),
    ] = None,
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
    tries: Annotated[
        bool, typer.Option("--try", help="Also run and show one trial of each AGENT. Record nothing.")
    ] = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Check the machine, the files, the LLM judge and the agents: commands, endpoints, keys and prices."""
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import color, width
    from passgate.flows.process.interrupts import until_ended
    from passgate.tasks.commands.doctor import examine_and_try
    from passgate.tasks.errors import ExitCode, UsageError
    from passgate.tasks.model.checks import State
    from passgate.tasks.reports.checks import doctor_report
    from passgate.tasks.reports.terminal_trial import trial_report

    if tries and not names:
        raise UsageError("--try needs the agents to be tried: passgate doctor AGENT --try")
    symptoms, trials = until_ended(examine_and_try(names or [], Path(gates), Path(suites), tries=tries))

    def text() -> str:
        shown = [trial_report(trial, width=width(), color=color()) for trial in trials]
        return "\n".join((doctor_report(symptoms, width=width(), color=color()), *shown))

    answer(text, lambda: {"checks": symptoms, "trials": trials}, as_json=as_json, quiet=quiet)
    failed = any(symptom.state is State.FAILED for symptom in symptoms)
    return ExitCode.BAD_INPUT if failed else ExitCode.PASS
