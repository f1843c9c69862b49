"""`passgate verify`: check a signed verdict and everything that it names."""

from pathlib import Path
from typing import Annotated

import typer


def verify(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The verdict.intoto.json of a run, or the run's folder or URL.")
    ],
    key: Annotated[
        Path | None, typer.Option(metavar="PUBLIC.pem", help="The public key of the person who may sign off.")
    ] = None,
) -> int:
    """Check the signature of a verdict, and check that nothing that it names has changed.

    The exit code is that of the verdict. It is 0 only for a signed PASS with nothing changed. It is 1 if anything
    differs.
    """
    from passgate.flows.cli.terminal import color, say, width
    from passgate.tasks.commands.verify import records_at
    from passgate.tasks.commands.verify import verify as verify_envelope
    from passgate.tasks.errors import ExitCode
    from passgate.tasks.reports.checks import verification_report

    with records_at(file) as records:
        verification = verify_envelope(records, key, Path.cwd())
    say(verification_report(verification, width=width(), color=color()))
    if verification.statement is None or not verification.holds:
        return ExitCode.FAIL
    return verification.statement.claim.decision.exit_code
