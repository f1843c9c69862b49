"""The command line: `main` is the one place where errors become messages and exit codes."""

import errno
import sys
import tempfile
import traceback
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from passgate.flows.cli.app import VerdictCode, app
from passgate.flows.cli.terminal import Output, take_standard_streams, warnings_printed
from passgate.flows.process.interrupts import ignore_interrupts
from passgate.flows.process.worker_report import WorkerReport
from passgate.tasks.errors import ExitCode, InputError, PassgateError
from passgate.tasks.files.temporary import BUG_PREFIX
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.messages import LONGEST_MESSAGE, warn


def main(arguments: Sequence[str] | None = None, *, report: WorkerReport | None = None) -> int:
    """Run one command; gives its exit code, and reports it. What is wrong goes to standard error, without a traceback.

    Without arguments the command is that of this process, and the process is about to end: its standard streams are
    made such that they cannot fail, and once its exit code is known no signal changes that.
    """
    report = report or WorkerReport()
    if arguments is not None:
        return _answer(_ended(arguments, report))
    output = take_standard_streams()
    ended = _ended(sys.argv[1:], report)
    ignore_interrupts()
    code = _heard(ended, _answer(ended), output)
    report.ended(code)
    return code


def _ended(arguments: Sequence[str], report: WorkerReport) -> int | BaseException:
    """Run one command; gives its exit code or what it raised."""
    try:
        with warnings_printed():
            result = app(args=list(arguments), standalone_mode=False, obj=report)
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:  # noqa: BLE001 - the last door: no traceback
        return error
    # typer makes a code of its own of ^C.
    if result == ExitCode.INTERRUPTED:
        return KeyboardInterrupt()
    return ExitCode.PASS if result is None else result


def _heard(ended: int | BaseException, code: int, output: Output | None) -> int:
    """The exit code of a command, given whether its output could be written. A reader that has gone, as that of
    `| head`, has what it wanted.
    """
    failure = output.failure if output is not None else None
    if failure is None or failure.errno == errno.EPIPE:
        return code
    warn(f"cannot write to standard output: {failure.strerror}")
    return code if isinstance(ended, VerdictCode | BaseException) else ExitCode.INCONCLUSIVE


def _answer(ended: int | BaseException) -> int:
    """The exit code of a command, given its own or what it raised, which is told."""
    if isinstance(ended, int):
        return ExitCode(ended)
    error = _first_known(ended) if isinstance(ended, BaseExceptionGroup) else ended
    if isinstance(error, TyperException):
        warn(f"{error.format_message()} (see `passgate --help`)")
        return ExitCode.BAD_INPUT
    if isinstance(error, typer.Abort | KeyboardInterrupt):
        warn("interrupted")
        return ExitCode.INTERRUPTED
    if isinstance(error, InputError):
        for problem in error.problems:
            sys.stderr.write(printable(str(problem), LONGEST_MESSAGE) + "\n")
        count = len(error.problems)
        warn(f"{count} problem{'s' if count != 1 else ''} found, nothing was run")
        return error.exit_code
    if isinstance(error, PassgateError):
        warn(str(error))
        return error.exit_code
    with tempfile.NamedTemporaryFile("w", prefix=BUG_PREFIX, suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    warn(f"a bug in passgate: {type(error).__name__}: {error}\nThe details for a report are in {file.name}")
    return ExitCode.BUG


def _first_known(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Of errors that came together the first that is ours, else the first at all."""
    leaves = list(_leaves(group))
    return next((leaf for leaf in leaves if isinstance(leaf, PassgateError)), leaves[0])


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
