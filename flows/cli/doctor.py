"""`passgate doctor`: what would keep a run from working, before it is run."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli.options import GatesOption, SuitesOption


def doctor(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[AGENT]...",
            help="Agents, as --agent takes them; all that have names by default.",
            show_default=False,
        ),
    ] = None,
    suites: SuitesOption = "suites",
    gates: GatesOption = "gates.yaml",
) -> int:
    """Check the machine, the files, the judge and the agents: commands, endpoints, keys, prices. Nothing is run."""
    from passgate.flows.cli.terminal import color, say, width
    from passgate.flows.interrupts import until_ended
    from passgate.tasks.doctor import examine
    from passgate.tasks.errors import ExitCode
    from passgate.tasks.model.checkup import State
    from passgate.tasks.reports.doctor import doctor_report

    symptoms = until_ended(examine(names or [], Path(gates), Path(suites)))
    say(doctor_report(symptoms, width=width(), color=color()))
    failed = any(symptom.state is State.FAILED for symptom in symptoms)
    return ExitCode.BAD_INPUT if failed else ExitCode.PASS
