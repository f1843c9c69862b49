"""The exit code of a command whose worker has ended: from the verdict on disk, or from what the worker has reported."""

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from passgate.flows.process.worker_report import BegunRun, Reported
from passgate.tasks.errors import ExitCode

_CODES = {"PASS": ExitCode.PASS, "FAIL": ExitCode.FAIL, "INCONCLUSIVE": ExitCode.INCONCLUSIVE}


@dataclass(frozen=True)
class CommandResult:
    """The exit code of a command, and what there is to say that the worker could not say any more."""

    exit_code: int
    messages: tuple[str, ...] = ()


def result_of(reported: Reported, status: int, *, interrupted: bool) -> CommandResult:
    """How a command ends, given what its worker has reported and the status of its process, as `waitpid` gives it.

    Where the command is about a run and there is a verdict of this run, the verdict decides. A worker that has
    reported nothing has not come to an end of its own, whatever its exit code: there is no answer, which is 3.
    """
    run = reported.run
    decided = None if run is None else decision_of(run)
    if run is not None and decided is not None:
        stands = f"{_ended(status)} after the verdict, which stands: {decided}, {os.path.relpath(run.verdict_file)}"
        return CommandResult(_CODES[decided], () if reported.exit_code is not None else (stands,))
    of_a_verdict = run is not None and reported.exit_code in {ExitCode.PASS, ExitCode.FAIL}
    if reported.exit_code is not None and not of_a_verdict:
        return CommandResult(reported.exit_code)
    carried_on = "" if run is None else f"; carry the run on with `passgate run {run.gate} --resume {run.run_id}`"
    if interrupted:
        return CommandResult(ExitCode.INTERRUPTED, (f"interrupted{carried_on}",))
    what = "an answer" if run is None else "a verdict"
    return CommandResult(ExitCode.INCONCLUSIVE, (f"{_ended(status)} before there was {what}{carried_on}",))


def decision_of(run: BegunRun) -> str | None:
    """What the verdict of a run says; `None` where there is none that is whole and of this run."""
    try:
        verdict = json.loads(Path(run.verdict_file).read_bytes())
        decision = verdict["decision"] if verdict["run_id"] == run.run_id else None
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return decision if decision in _CODES else None


def _ended(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    how = f"was killed ({signal.strsignal(-code)})" if code < 0 else f"exited {code}"
    return f"the process that did the work {how}"
