"""The command line. `main` is the only place that turns errors into messages and exit codes."""

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import Final

import typer
from typer.exceptions import TyperException

from passgate.flows.cli.app import app
from passgate.flows.cli.output import VerdictCode, print_warnings, take_standard_streams
from passgate.flows.process.interrupts import ignore_interrupts
from passgate.flows.process.supervision import WorkerReport
from passgate.tasks.errors import (
    ExitCode,
    InputError,
    MeasurementError,
    PassgateError,
    Problem,
    UsageError,
    first_known,
)
from passgate.tasks.files.proxies import exceptions_with_loopback
from passgate.tasks.files.temporary import BUG_PREFIX
from passgate.tasks.reports.messages import warn, write_line

_COMPLETE: Final = "_PASSGATE_COMPLETE"  # The environment variable by which a shell asks what could come next


def main(arguments: Sequence[str] | None = None, *, report: WorkerReport | None = None) -> int:
    """Run one command, report its exit code and return it. Print errors on standard error, without a traceback.

    Without `arguments`, run the command of this process, which ends afterwards. Its standard streams then never raise,
    and no signal changes its exit code once the code is known.
    """
    report = report or WorkerReport()
    if arguments is not None:
        return _exit_code(_run(arguments, report))
    # Neither Prefect's client nor an agent uses a proxy for what passgate serves on the loopback.
    if any(name.lower().endswith("_proxy") for name in os.environ):
        os.environ |= exceptions_with_loopback(os.environ)
    output = take_standard_streams()
    ended = _run(sys.argv[1:], report)
    ignore_interrupts()
    code, failure = _exit_code(ended), output.failure if output is not None else None
    # A reader that closed the pipe, such as `| head`, is not an error.
    if failure is not None and failure.errno != errno.EPIPE:
        warn(f"cannot write to standard output: {failure.strerror}")
        code = code if isinstance(ended, VerdictCode | BaseException) else ExitCode.INCONCLUSIVE
    report.report_exit(code)
    return code


def complete() -> int:
    """Answer a shell about completions without a traceback in the user's line. Return the exit code."""
    completes = _COMPLETE in os.environ
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as null, redirect_stderr(null if completes else sys.stderr):
            app(prog_name="passgate")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    except Exception as error:  # noqa: BLE001 - as above
        if not completes:
            warn(f"cannot set up the completion: {error}")
        return ExitCode.BAD_INPUT
    return ExitCode.PASS


def _run(arguments: Sequence[str], report: WorkerReport) -> int | BaseException:
    """Run one command. Return its exit code or its error. Refuse text that is not UTF-8: it cannot be recorded."""
    texts = [("the argument", argument) for argument in arguments]
    with suppress(OSError):  # without a working folder; a command that needs one reports it
        texts.append(("the name of the working folder", str(Path.cwd())))
    for what, text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            return UsageError(f"{what} {text!r} is not UTF-8 text")
    try:
        with print_warnings():
            result = app(args=list(arguments), standalone_mode=False, obj=report)
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:  # noqa: BLE001 - users get no traceback
        return error
    # typer turns Ctrl-C into an exit code.
    if result == ExitCode.INTERRUPTED:
        return KeyboardInterrupt()
    return ExitCode.PASS if result is None else result


def _exit_code(ended: int | BaseException) -> int:
    """Return the exit code of a command that ended or raised an error. Print the error."""
    if isinstance(ended, int):
        return ExitCode(ended)
    # A task group wraps its errors. Without an error of passgate in it, the first one has to do.
    error = first_known(ended) or ended
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TyperException):
        # pydantic, with which typer reads values, begins its messages so.
        message = error.format_message().replace(": Value error, ", ": ", 1)
        warn(f"{message} (see `passgate --help`)")
        _tell_ci(message)
        return ExitCode.BAD_INPUT
    if isinstance(error, typer.Abort | KeyboardInterrupt):
        warn("interrupted")
        return ExitCode.INTERRUPTED
    if isinstance(error, InputError):
        from passgate.tasks.reports.figures import count

        for problem in error.problems:
            write_line(_mask(problem))
        summary = f"{count(len(error.problems), 'problem')} found, nothing was run"
        warn(summary)
        _tell_ci(summary, error.problems)
        return error.exit_code
    if isinstance(error, PassgateError):
        warn(_mask(error))
        _tell_ci(_mask(error))
        return error.exit_code
    with tempfile.NamedTemporaryFile("w", prefix=BUG_PREFIX, suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    warn(f"a bug in passgate: {type(error).__name__}: {_mask(error)}\nThe details for a report are in {file.name}")
    return ExitCode.BUG


def _tell_ci(summary: str, problems: Sequence[Problem] = ()) -> None:
    """Show GitHub why there is no verdict, where it would show the verdict."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from passgate.tasks.report import append_step_summary
    from passgate.tasks.reports.annotations import error_annotations
    from passgate.tasks.reports.markdown import no_verdict

    places = [(problem.file, problem.line, _mask(problem.message)) for problem in problems]
    # On standard error, because a command with --json prints nothing else on the other stream.
    sys.stderr.write(error_annotations(places or [("", 0, summary)]))
    append_step_summary(no_verdict(summary, [_mask(problem) for problem in problems]))


def _mask(error: object) -> str:
    """Return the text of an error without the values of variables that hold secrets by their names."""
    from passgate.tasks.history.masking import masker_for

    masker = masker_for(None)
    return masker.render(error.message) if isinstance(error, MeasurementError) else masker.text(str(error))
