"""The command line: `main` is the one place where errors become messages and exit codes."""

import sys
import tempfile
import traceback
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from passgate.flows.cli.app import app
from passgate.flows.cli.terminal import LONGEST_MESSAGE, warn
from passgate.tasks.errors import ExitCode, InputError, PassgateError
from passgate.tasks.reports.escape import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives its exit code. What is wrong goes to standard error, without a traceback."""
    try:
        result = app(args=list(sys.argv[1:] if arguments is None else arguments), standalone_mode=False)
    except TyperException as error:
        warn(f"{error.format_message()} (see `passgate --help`)")
        return ExitCode.BAD_INPUT
    except BaseExceptionGroup as group:
        return _answer(_first_known(group))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last door: no traceback for users
        return _answer(error)
    # typer makes a code of its own of ^C.
    return _answer(KeyboardInterrupt()) if result == ExitCode.INTERRUPTED else ExitCode(result or 0)


def _answer(error: BaseException) -> int:
    if isinstance(error, typer.Abort | KeyboardInterrupt):
        warn("interrupted; a run of a gate is carried on with `passgate run GATE --resume last`")
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
    with tempfile.NamedTemporaryFile(
        "w", prefix="passgate-bug-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
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
