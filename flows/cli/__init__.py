"""The command line. `main` is the only place that turns errors into messages and exit codes.

Each command is imported when it is used, and runs in the project's folder.
"""

import errno
import inspect
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, suppress
from dataclasses import replace
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, get_args

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.models import ArgumentInfo, OptionInfo

from passgate import __version__
from passgate.flows.cli.options import JsonOption, QuietOption
from passgate.flows.cli.output import (
    OutputForm,
    VerdictCode,
    gates_file,
    output_form,
    print_warnings,
    take_standard_streams,
)
from passgate.flows.process.interrupts import ignore_interrupts
from passgate.flows.process.supervision import WorkerReport
from passgate.tasks.errors import (
    ExitCode,
    InputError,
    MeasurementError,
    PassgateError,
    Problem,
    Quote,
    Raw,
    UsageError,
    first_known,
)
from passgate.tasks.files.proxies import exceptions_with_loopback
from passgate.tasks.files.temporary import BUG_PREFIX
from passgate.tasks.reports.messages import warn, write_line

_LONGEST_TRACEBACK: Final = 1_000_000
_COMPLETE: Final = "_PASSGATE_COMPLETE"  # The environment variable by which a shell asks what could come next
_PANELS: Final[Mapping[str, Mapping[str, str]]] = {
    "Run": {"run": "run.run", "try": "trials.try_task", "sign-off": "trials.sign_off", "judge": "trials.judge"},
    "Write tasks": {
        "validate": "task_files.validate",
        "show": "task_files.show",
        "check-graders": "task_files.check_graders",
        "convert": "task_files.convert",
        "schema": "task_files.schema",
    },
    "Look at results": {
        "report": "results.report",
        "view": "results.view",
        "trend": "results.trend",
        "traces": "results.traces",
        "history": "history.history",
    },
    "Trust a gate": {"forecast": "trust.forecast", "burn-in": "trust.burn_in", "baseline": "trust.baseline"},
    "Set up": {"init": "init.init", "doctor": "trials.doctor"},
}
"""The module and the name of each command, in the panels of the help."""
_COMMANDS: Final = {name: (panel, place) for panel, places in _PANELS.items() for name, place in places.items()}
_PATHS: Final = frozenset({"DIR", "FILE", "PATH", "FILE.json", "FILE.svg", "URL"})
"""The metavars of parameters that are paths."""
_PERHAPS_PATHS: Final = frozenset({"RUN", "[RUN]", "TASK", "ID"})  # The metavars of parameters that may be paths


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
    mask = _mask_of_command()
    if isinstance(error, InputError):
        from passgate.tasks.reports.figures import count

        problems = [replace(problem, message=mask(problem.message)) for problem in error.problems]
        for problem in problems:
            write_line(str(problem))
        summary = f"{count(len(error.problems), 'problem')} found, nothing was run"
        warn(summary)
        _tell_ci(summary, problems)
        return error.exit_code
    if isinstance(error, PassgateError):
        message = mask(error.message if isinstance(error, MeasurementError) else str(error))
        warn(message)
        _tell_ci(message)
        return error.exit_code
    with tempfile.NamedTemporaryFile("w", prefix=BUG_PREFIX, suffix=".txt", delete=False, encoding="utf-8") as file:
        file.write(mask(Quote("".join(traceback.format_exception(error)), _LONGEST_TRACEBACK, keep="end")))
    warn(f"a bug in passgate: {type(error).__name__}: {mask(str(error))}\nThe details for a report are in {file.name}")
    return ExitCode.BUG


def _tell_ci(summary: str, problems: Sequence[Problem] = ()) -> None:
    """Show GitHub why there is no verdict, where it would show the verdict."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from passgate.tasks.report import append_step_summary
    from passgate.tasks.reports.annotations import error_annotations
    from passgate.tasks.reports.markdown import no_verdict

    places = [(problem.file, problem.line, problem.message) for problem in problems]
    # On standard error, because a command with --json prints nothing else on the other stream.
    sys.stderr.write(error_annotations(places or [("", 0, summary)]))
    append_step_summary(no_verdict(summary, [str(problem) for problem in problems]))


def _mask_of_command() -> Callable[[Raw], str]:
    """Return what masks the secrets that the command's gates file declares, and those that their variables' names tell.

    Without a gates file that passgate can read, only the latter are known.
    """
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.history.masking import masker_for

    policy = None
    with suppress(PassgateError, OSError):
        policy = policy_or_default(Path(gates_file.get()))
    masker = masker_for(policy)
    return lambda message: masker.render(message, _LONGEST_TRACEBACK)


class _Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": dict.fromkeys(_COMMANDS)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, or `None`."""
        return _load_command(cmd_name) if cmd_name in _COMMANDS else None


@cache
def _load_command(name: str) -> Any:
    panel, place = _COMMANDS[name]
    module, _, attribute = place.rpartition(".")
    found = getattr(import_module(f"passgate.flows.cli.{module}"), attribute)
    group = found if isinstance(found, typer.Typer) else typer.Typer(add_completion=False)
    if found is not group:
        group.command(name)(found)
    for info in group.registered_commands:
        if info.callback is not None:
            info.callback = _prepare(info.callback, in_project=name != "init")
            _set_plain_metavars(info.callback)
    command: Any = typer.main.get_command(group)
    command.name, command.rich_help_panel = name, panel
    return command


def _set_plain_metavars(command: Callable[..., Any]) -> None:
    """Show `N` for a number in the help of a command, and nothing for an option without a value."""
    for parameter in inspect.signature(command).parameters.values():
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(info, OptionInfo) and info.metavar is None:
                kinds = get_args(get_args(parameter.annotation)[0]) or get_args(parameter.annotation)
                info.metavar = "" if bool in kinds else "N" if int in kinds else None


def _prepare(command: Callable[..., int | None], *, in_project: bool) -> Callable[..., int | None]:
    """Add --json and --quiet to a command, and run it in the project's folder, with paths relative to that."""
    signature = inspect.signature(command)

    @wraps(command)
    def run(*, as_json: bool, quiet: bool, **given: Any) -> int | None:
        output_form.set(OutputForm(as_json, quiet))
        folder = _find_project() if in_project else None
        if folder is None:
            return command(**given)
        below = Path(os.path.relpath(Path.cwd(), folder))
        for name, value in given.items():
            parameter = signature.parameters[name]
            metadata = getattr(parameter.annotation, "__metadata__", ())
            info = next((one for one in metadata if isinstance(one, ArgumentInfo | OptionInfo)), None)
            if value != parameter.default:
                given[name] = _convert_path(value, info, below)
        with chdir(folder):
            return command(**given)

    added = {"as_json": JsonOption, "quiet": QuietOption}
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in added.items()
    ]
    run.__annotations__ = {**command.__annotations__, **added}
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *parameters]
    )
    return run


def _find_project() -> Path | None:
    """Return the nearest folder above with a gates file or suites; `None` if the working folder has them."""
    try:
        here = Path.cwd()
        for folder in (here, *here.parents):
            if (folder / "gates.yaml").is_file() or (folder / "suites").is_dir():
                return None if folder == here else folder
            if (folder / ".git").exists():
                return None
    except OSError:
        pass  # the working folder does not exist any more, or is not readable
    return None


def _convert_path(value: Any, info: ArgumentInfo | OptionInfo | None, below: Path) -> Any:
    """Convert a value that is a path relative to the folder `below` to a path relative to the project's folder."""
    if info is None or not info.metavar or (info.envvar and value == os.environ.get(str(info.envvar))):
        return value
    if isinstance(value, list):
        return [_convert_path(one, info, below) for one in value]
    if not isinstance(value, str | Path) or str(value) == "-" or "://" in str(value):
        return value
    path = os.path.normpath(below / value)
    is_path = info.metavar in _PATHS or (info.metavar in _PERHAPS_PATHS and os.path.lexists(value))
    return type(value)(path) if is_path else value


app = typer.Typer(
    name="passgate",
    cls=_Commands,
    epilog="Exit codes: 0 PASS, 1 FAIL, 2 bad usage or input, 3 INCONCLUSIVE, 70 a bug of passgate, 130 interrupted.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"passgate {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def passgate(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, metavar="", help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """A merge gate for AI agents. It runs every task k times and gives one verdict and one exit code."""  # noqa: D401 - it is the help text of the command
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
