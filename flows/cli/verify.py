"""`passgate verify`: a signed verdict and all that it names."""

from pathlib import Path
from typing import Annotated

import typer


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A run's verdict.intoto.json.", show_default=False)],
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="PUBLIC.pem", help="The public key of whoever may sign off.", show_default=False),
    ] = None,
) -> int:
    """Check who has signed a verdict, and that all it names is as it was signed.

    The exit code is that of the verdict: 0 only for a PASS that somebody has signed and that is as it was. It is 1 when
    anything differs."""
    from passgate.flows.cli.terminal import color, say, width
    from passgate.tasks.commands.verify import verify as look_at
    from passgate.tasks.errors import ExitCode
    from passgate.tasks.reports.verification import verification_report

    verification = look_at(file, key, Path.cwd())
    say(verification_report(verification, width=width(), color=color()))
    if verification.statement is None or not verification.holds:
        return ExitCode.FAIL
    return verification.statement.claim.decision.exit_code
