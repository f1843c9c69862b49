"""Every exception of passgate, the exit codes of its command, and texts about a trial that may contain secrets.

PassgateError
├── UsageError        2  a command line or a setting that cannot be used
├── InputError        2  files with problems, all of them, each with its place
├── StorageError      3  a run that could not be recorded
├── UnknownJudgeError 3  a change in CI that may have chosen who judges it
└── MeasurementError     one trial that could not be measured: its status is `error`
    ├── CostCapError     the run's money was spent before: its status is `not_run`
    └── UnknownPriceError  money is limited, and nobody knows what a model costs
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Literal

EXCERPT: Final = 2000  # Characters of foreign text in one message


class ExitCode(IntEnum):
    """The exit codes of the `passgate` command."""

    PASS = 0
    FAIL = 1
    BAD_INPUT = 2
    INCONCLUSIVE = 3
    BUG = 70
    INTERRUPTED = 130


@dataclass(frozen=True)
class Quote:
    """A value from outside in a message. Rendering masks secrets in it, then cuts it, then encodes it: half a secret
    is no longer found, and neither is one with escapes.
    """

    value: Any  # A text, or with `json` any JSON value; a `RawText` for messages of others
    limit: int = EXCERPT  # Characters
    form: Literal["text", "repr", "json"] = "text"
    keep: Literal["beginning", "end", "both"] = "beginning"

    def __bool__(self) -> bool:
        return self.form != "text" or bool(self.value)

    def __str__(self) -> str:
        """Return it for a debugger or a traceback, secrets included. What leaves a trial is rendered by a `Masker`."""
        text = str(self.value)
        if len(text) > self.limit:
            text = f"…{text[-self.limit :]}" if self.keep == "end" else f"{text[: self.limit]}…"
        return repr(text) if self.form == "repr" else text


@dataclass(frozen=True)
class RawText:
    """A message of a grader, an agent or an error about a trial, secrets included. `Masker.render` returns the text
    that may leave the trial.
    """

    parts: tuple[str | Quote, ...] = ()

    def __bool__(self) -> bool:
        return any(self.parts)

    def __str__(self) -> str:
        return "".join(str(part) for part in self.parts)


Raw = str | Quote | RawText  # A message before rendering. One that quotes nothing is a plain text.


class PassgateError(Exception):
    """The base of all. Its text says what is wrong, where, and what to do about it."""

    exit_code = ExitCode.BUG

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions with keyword arguments do not survive pickling otherwise, and Prefect moves them.
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[PassgateError], arguments: tuple[Any, ...], state: dict[str, Any]) -> PassgateError:
    error = kind.__new__(kind)
    error.args = arguments
    error.__dict__.update(state)
    return error


class UsageError(PassgateError):
    """The command line or a setting asks for something that cannot be done."""

    exit_code = ExitCode.BAD_INPUT


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing wrong in one file; `line` and `column` count from 1."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class InputError(PassgateError):
    """Input files with problems. `problems` holds every one of them, in file order."""

    exit_code = ExitCode.BAD_INPUT

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.file, problem.line, problem.column)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class StorageError(PassgateError):
    """The journal or the history cannot be written or read: without a record there is no verdict."""

    exit_code = ExitCode.INCONCLUSIVE


class UnknownJudgeError(PassgateError):
    """In CI, nobody can tell whose files must judge the change, so no verdict would mean anything."""

    exit_code = ExitCode.INCONCLUSIVE


class EngineError(PassgateError):
    """Prefect could not be reached or broke down, before or after the verdict."""

    exit_code = ExitCode.INCONCLUSIVE


class WorkerLostError(EngineError):
    """A process that ran a batch of trials is gone or unavailable: the batch must run again."""


class MeasurementError(PassgateError):
    """A trial could not be measured, through no fault of the agent. `transient` ones are tried again."""

    exit_code = ExitCode.INCONCLUSIVE

    def __init__(self, message: Raw, *, transient: bool = False) -> None:
        self.message = message
        self.transient = transient
        super().__init__(message)


class CostCapError(MeasurementError):
    """A trial was not run, or not to its end, because what the whole run may cost is spent."""


class UnknownPriceError(MeasurementError):
    """A trial needs the price of a model that no price table knows."""

    def __init__(self, message: Raw, model: str) -> None:
        self.model = model
        super().__init__(message)


def first_known(error: BaseException) -> PassgateError | None:
    """Return the first error of passgate in an exception group, or `None`."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(first_known, error.exceptions)), None)
    return error if isinstance(error, PassgateError) else None
