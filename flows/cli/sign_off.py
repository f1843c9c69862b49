"""`passgate sign-off`: record a person's decision on a verdict that waits for it."""

from typing import Annotated, Literal

import typer

from passgate.flows.cli import options


def sign_off(
    run: options.RunArgument,
    by: Annotated[str, typer.Option(metavar="NAME", help="Your name.")],
    decision: Annotated[Literal["approve", "reject"], typer.Option(help="`approve` gives PASS, `reject` gives FAIL.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why you decide so.")],
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Approve or reject a run that waits for a sign-off. Refuse if anything has changed since the run."""
    from passgate.flows.cli.output import say_verdict
    from passgate.tasks.commands.sign_off import sign_off as decide
    from passgate.tasks.history.run_store import RunStore
    from passgate.tasks.planning.find_run import find_run
    from passgate.tasks.reports.escape import printable
    from passgate.tasks.reports.messages import LONGEST_MESSAGE

    run_id = find_run(run)
    verdict = decide(run_id, by=by, decision=decision, reason=reason)
    store = RunStore.of(run_id)
    lines = [printable(verdict.headline, LONGEST_MESSAGE), f"artifacts  {store.shown}"]
    say_verdict(verdict, lambda: "\n".join(lines), as_json=as_json, quiet=quiet)
    return verdict.exit_code
