"""`passgate check-graders`: test the graders before they grade agents."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli import options


def check_graders(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Task files, eval files, folders that contain them. Default: the suites folder.",
            parser=options.named_path,
        ),
    ] = None,
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Test the graders: good solutions must pass, wrong solutions must fail.

    Good solutions are the reference solutions. Wrong solutions are the counterexamples, mutants (good transcripts
    with one thing broken) and doing nothing.
    """
    from passgate.flows.cli.task_files import read_tasks_by_folder
    from passgate.flows.cli.terminal import color, say, width
    from passgate.flows.process.interrupts import until_ended
    from passgate.tasks.commands.check_graders import check_graders as check
    from passgate.tasks.errors import ExitCode, UsageError
    from passgate.tasks.formats.loading import load_prices, policy_or_default
    from passgate.tasks.reports.checks import grader_checks_as_json, grader_checks_report

    if not paths and not Path(suites).is_dir():
        raise UsageError(f"no suites folder {suites}: name one with --suites, or make one with `passgate init`")
    policy = policy_or_default(Path(gates))
    tasks = read_tasks_by_folder(paths or [Path(suites)], policy)
    checks = until_ended(check(tasks, policy, load_prices(Path(gates))))
    if as_json or not quiet:
        say(grader_checks_as_json(checks) if as_json else grader_checks_report(checks, width=width(), color=color()))
    # A fault is certain, whatever the checks that could not be measured would show.
    if any(check.findings for check in checks):
        return ExitCode.FAIL
    return ExitCode.INCONCLUSIVE if any(check.unmeasured for check in checks) else ExitCode.PASS
