"""`passgate check-graders`: test the graders before they grade agents."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli.options import GatesOption, SuitesOption, named_path

if TYPE_CHECKING:
    from passgate.tasks.errors import Problem
    from passgate.tasks.model.checks import GraderCheck
    from passgate.tasks.model.policy import Policy
    from passgate.tasks.model.task import EvalTask


def check_graders(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Task files, eval files, folders that contain them. Default: the suites folder.",
            parser=named_path,
            show_default=False,
        ),
    ] = None,
    suites: SuitesOption = "suites",
    gates: GatesOption = "gates.yaml",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON list with one check per task and its notes.")
    ] = False,
) -> int:
    """Test the graders: good solutions must pass, wrong solutions must fail.

    Good solutions are the reference solutions. Wrong solutions are the counterexamples, mutants of good transcripts,
    and an agent that does nothing.
    """
    from passgate.flows.cli.terminal import color, say, width
    from passgate.flows.process.interrupts import until_ended
    from passgate.tasks.commands.check_graders import check_graders as check
    from passgate.tasks.errors import UsageError
    from passgate.tasks.formats.loading import load_prices, policy_or_default
    from passgate.tasks.reports.checks import grader_checks_as_json, grader_checks_report

    if not paths and not Path(suites).is_dir():
        raise UsageError(f"no suites folder {suites}: name one with --suites, or make one with `passgate init`")
    policy = policy_or_default(Path(gates))
    tasks = _by_folder(paths or [Path(suites)], policy)
    checks = until_ended(check(tasks, policy, load_prices(Path(gates))))
    say(grader_checks_as_json(checks) if as_json else grader_checks_report(checks, width=width(), color=color()))
    return _exit_code(checks)


def _by_folder(paths: Sequence[Path], policy: "Policy") -> "dict[Path, list[EvalTask]]":
    """Group the tasks of files and folders by the suites folder that their paths are relative to.

    Raise `UsageError` if there are no tasks. Raise `InputError` with the problems of all files.
    """
    from passgate.flows.cli.remarks import remark
    from passgate.tasks.errors import InputError, UsageError
    from passgate.tasks.formats.discover import root_of
    from passgate.tasks.formats.loading import load_paths

    by_folder: dict[Path, list[EvalTask]] = {}
    problems: list[Problem] = []
    for path in dict.fromkeys(paths):
        if not path.exists():
            raise UsageError(f"no file or folder {path}")
        loaded = load_paths([path], policy)
        remark(loaded)
        problems += loaded.problems
        for task in loaded.tasks:
            by_folder.setdefault(root_of(Path(task.file), path), []).append(task)
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    if not by_folder:
        raise UsageError(f"no task files in {', '.join(map(str, paths))}: neither tasks nor evals")
    return by_folder


def _exit_code(checks: "Sequence[GraderCheck]") -> int:
    from passgate.tasks.errors import ExitCode

    if any(check.findings for check in checks):
        return ExitCode.FAIL
    return ExitCode.INCONCLUSIVE if any(check.unmeasured for check in checks) else ExitCode.PASS
