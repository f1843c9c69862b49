"""`passgate sign-off`: a person's decision on a verdict that awaits it."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def sign_off(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The run: its id, the beginning of it, or `last`.", show_default=False)
    ],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides.", show_default=False)],
    decision: Annotated[
        Literal["approve", "reject"], typer.Option("--decision", help="PASS or FAIL.", show_default=False)
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.", show_default=False)],
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="KEY.pem",
            help="Sign the verdict with this ed25519 key; PASSGATE_SIGNING_PASSPHRASE opens an encrypted one.",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Approve or reject what a gate with `sign_off` would pass. Refused when anything has changed since."""
    from passgate.flows.cli.terminal import say
    from passgate.tasks.commands.sign_off import sign_off as decide
    from passgate.tasks.history.run_folder import RunFolder
    from passgate.tasks.planning.find_run import find_run
    from passgate.tasks.reports.escape import printable
    from passgate.tasks.reports.messages import LONGEST_MESSAGE

    run_id = find_run(run)
    verdict = decide(run_id, by=by, decision=decision, reason=reason, key_file=key)
    say(printable(verdict.headline, LONGEST_MESSAGE))
    folder = RunFolder(run_id)
    say(f"artifacts  {folder.shown}")
    if key is not None:
        say(f"signed     {folder.shown}/{folder.attestation.name}")
    return verdict.exit_code
