"""`passgate verify`: check a signed verdict and everything that it names."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli import options
from passgate.flows.cli.completion import complete_runs


def verify(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="The verdict.intoto.json of a run, or the run: its id, its folder, its URL, or `last`.",
            autocompletion=complete_runs,
        ),
    ],
    key: Annotated[
        Path | None, typer.Option(metavar="PUBLIC.pem", help="The public key of the person who may sign off.")
    ] = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Check the signature of a verdict, and check that nothing that it names has changed.

    The exit code is that of the verdict. It is 0 only for a signed PASS with nothing changed. It is 1 if anything
    differs.
    """
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import color, width
    from passgate.tasks.commands.verify import records_at
    from passgate.tasks.commands.verify import verify as verify_envelope
    from passgate.tasks.errors import ExitCode
    from passgate.tasks.reports.checks import verification_report

    with records_at(file) as records:
        verification = verify_envelope(records, key, Path.cwd())
    answer(
        lambda: verification_report(verification, width=width(), color=color()),
        lambda: verification.model_dump(mode="json") | {"holds": verification.holds},
        as_json=as_json,
        quiet=quiet,
    )
    if verification.statement is None or not verification.holds:
        return ExitCode.FAIL
    return verification.statement.claim.decision.exit_code
