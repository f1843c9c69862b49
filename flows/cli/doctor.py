"""`passgate doctor`: find what keeps a run from working before you start it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli.options import GatesOption, SuitesOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from passgate.tasks.model.checks import Symptom
    from passgate.tasks.model.trial import FinishedTrial


def doctor(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[AGENT]...",
            help="Agents, as for --agent. Default: every agent with a name.",
            show_default=False,
        ),
    ] = None,
    suites: SuitesOption = "suites",
    gates: GatesOption = "gates.yaml",
    tries: Annotated[
        bool, typer.Option("--try", help="Also run and show one trial of each AGENT. Record nothing.")
    ] = False,
) -> int:
    """Check the machine, the files, the LLM judge and the agents: commands, endpoints, keys and prices."""
    from passgate.flows.cli.terminal import color, say, width
    from passgate.flows.process.interrupts import until_ended
    from passgate.tasks.errors import ExitCode, UsageError
    from passgate.tasks.model.checks import State
    from passgate.tasks.reports.checks import doctor_report
    from passgate.tasks.reports.trial import trial_report

    if tries and not names:
        raise UsageError("--try needs the agents to be tried: passgate doctor AGENT --try")
    symptoms, trials = until_ended(_examined(names or [], Path(gates), Path(suites), tries=tries))
    say(doctor_report(symptoms, width=width(), color=color()))
    for trial in trials:
        say("\n" + trial_report(trial, width=width(), color=color()))
    failed = any(symptom.state is State.FAILED for symptom in symptoms)
    return ExitCode.BAD_INPUT if failed else ExitCode.PASS


async def _examined(
    names: "Sequence[str]", gates: Path, suites: Path, *, tries: bool
) -> "tuple[list[Symptom], list[FinishedTrial]]":
    """Return the results of all checks, and the trials of the agents that passed them if `tries` is set."""
    from passgate.tasks.commands.doctor import examine
    from passgate.tasks.model.checks import State

    symptoms = list(await examine(names, gates, suites))
    trials: list[FinishedTrial] = []
    unfit = {symptom.subject for symptom in symptoms if symptom.state is State.FAILED}
    for name in names if tries else ():
        if f"agent {name}" not in unfit:
            from passgate.tasks.commands.doctor import try_agent

            symptom, trial = await try_agent(name, gates, suites)
            symptoms.append(symptom)
            trials += [trial] if trial else []
    return symptoms, trials
