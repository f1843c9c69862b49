"""Report a command's run and exit code from the worker to the supervisor, and find the exit code of the command."""

import json
import os
import signal
from dataclasses import asdict, dataclass
from pathlib import Path

from passgate.tasks.errors import ExitCode

_CODES = {"PASS": ExitCode.PASS, "FAIL": ExitCode.FAIL, "INCONCLUSIVE": ExitCode.INCONCLUSIVE}


@dataclass(frozen=True, kw_only=True)
class BegunRun:
    """A run that has begun. Its folder has no verdict of an earlier attempt any more."""

    run_id: str
    gate: str
    verdict_file: str  # Absolute


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What a worker has reported so far."""

    run: BegunRun | None = None
    exit_code: int | None = None


class WorkerReport:
    """The worker's end of the pipe to its supervisor. Without a pipe, reports go nowhere."""

    def __init__(self, pipe: int | None = None) -> None:
        self._pipe = pipe

    def run_begun(self, run: BegunRun) -> None:
        """Report the run whose verdict is the exit code of the command."""
        self._write({"run": asdict(run)})

    def ended(self, exit_code: int) -> None:
        """Report the exit code. Only the end of the process is left to do."""
        self._write({"exit_code": exit_code})

    def _write(self, report: dict[str, object]) -> None:
        if self._pipe is not None:
            os.write(self._pipe, json.dumps(report).encode() + b"\n")


def read_report(text: bytes) -> Reported:
    """Parse the lines that a worker wrote. Ignore an unfinished last line."""
    lines = text.split(b"\n")[:-1]
    reports = {key: value for line in lines for key, value in json.loads(line).items()}
    run = BegunRun(**reports["run"]) if "run" in reports else None
    return Reported(run=run, exit_code=reports.get("exit_code"))


@dataclass(frozen=True)
class CommandResult:
    """The exit code of a command, and the messages that the worker could not print any more."""

    exit_code: int
    messages: tuple[str, ...] = ()


def command_result(reported: Reported, status: int, *, interrupted: bool) -> CommandResult:
    """Return the result of a command from its worker's reports and the worker's `waitpid` status.

    If the command has a run with a verdict, the verdict decides. A worker that reported nothing did not finish,
    whatever its own exit code, so there is no answer: exit code 3.
    """
    run = reported.run
    decision = None if run is None else read_decision(run)
    if run is not None and decision is not None:
        message = f"{_exit_description(status)} after the verdict, which stands: {decision}, "
        message += os.path.relpath(run.verdict_file)
        return CommandResult(_CODES[decision], () if reported.exit_code is not None else (message,))
    needs_verdict = run is not None and reported.exit_code in {ExitCode.PASS, ExitCode.FAIL}
    if reported.exit_code is not None and not needs_verdict:
        return CommandResult(reported.exit_code)
    remedy = "" if run is None else f"; resume the run with `passgate run {run.gate} --resume {run.run_id}`"
    if interrupted:
        return CommandResult(ExitCode.INTERRUPTED, (f"interrupted{remedy}",))
    what = "an answer" if run is None else "a verdict"
    return CommandResult(ExitCode.INCONCLUSIVE, (f"{_exit_description(status)} before there was {what}{remedy}",))


def read_decision(run: BegunRun) -> str | None:
    """Return the decision of a run's verdict, or `None` if the file is missing, incomplete or of another run."""
    try:
        verdict = json.loads(Path(run.verdict_file).read_bytes())
        decision = verdict["decision"] if verdict["run_id"] == run.run_id else None
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return decision if decision in _CODES else None


def _exit_description(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    how = f"was killed ({signal.strsignal(-code)})" if code < 0 else f"exited {code}"
    return f"the process that did the work {how}"
