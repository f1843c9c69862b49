"""What the options of all graders have, what a type of grader says of itself, and parts of their options."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple

import regress

from passgate.tasks.model.base import Amount, Count, Frozen, Seconds, Share, Text
from passgate.tasks.model.grade import ViolationRule

PASS_FROM: Final = 0.8  # The least score that passes, where nothing else is said
OptionPath = tuple[str | int, ...]  # Keys and indices that lead from a grader to one of its options
Problem = tuple[OptionPath, str]
Command = tuple[str, tuple[str, ...]]  # A folder relative to the suites folder, and the words of what runs there


FLAGS: Final = "dgimsuvy"
ENGINE_FLAGS: Final = frozenset("imsuv")
"""The flags that change what a pattern matches; the others say where a search begins and what it tells."""


class NamedPath(NamedTuple):
    """A file or folder of the suites folder that a grader names."""

    option: OptionPath
    name: str
    kind: Literal["file", "tests", "prompt", "folder"]
    """A prompt is read with the task, a folder is where something runs."""


class GraderOptions(Frozen):
    """What every grader has.

    A type of grader says here all that is special about it; nothing else lists types of graders.
    """

    function: ClassVar[str]
    """The function of `tasks/graders/` that computes its grade, as in `answers.grade_equals`."""
    needs_one_of: ClassVar[tuple[str, ...]] = ()
    """Options of which a grader has one at least: without any it cannot fail."""
    judges_tool_calls: ClassVar[bool] = False
    """Whether its score is one of the metric `tool_call_accuracy`."""
    finds: ClassVar[ViolationRule | None] = None
    """The rule that it finds violations of."""

    name: Text | None = None
    """What reports call this grader; its type when not given."""
    weight: Amount = 1
    """Its part in the trial's score, where the task's `scoring` asks for one."""

    @property
    def evidence(self) -> Literal["transcript", "state", "program", "judge"]:
        """What it goes by: the transcript, only the state that the agent left, or what a program or a judge says."""
        return "transcript"

    @property
    def veto(self) -> ViolationRule | None:
        """The rule whose violations, which no other result offsets, it finds with these options."""
        return self.finds

    @property
    def forbidden_calls(self) -> tuple[Any, ...]:
        """The calls that are violations: patterns of names and arguments."""
        return ()

    @property
    def argument_rules(self) -> tuple[Any, ...]:
        """What arguments of calls may be, and must not be."""
        return ()

    def named_paths(self) -> Iterator[NamedPath]:
        """Yield the files and folders that it names."""
        yield from ()

    def commands(self) -> Iterator[Command]:
        """Yield the programs of the suites' authors that it runs."""
        yield from ()

    def json_schemas(self) -> Iterator[tuple[OptionPath, dict[str, Any]]]:
        """Yield its JSON Schemas."""
        yield from ()

    def members(self) -> Iterator[tuple[OptionPath, Any]]:
        """Yield the graders that it is made of."""
        yield from ()

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the options that a JSON Schema cannot say and that no file is needed for."""
        fields = type(self).model_fields
        if self.needs_one_of and all(getattr(self, key) == fields[key].default for key in self.needs_one_of):
            yield (), f"this grader cannot fail: give at least one of {', '.join(self.needs_one_of)}"

    @property
    def type_name(self) -> str:
        """What it is; each kind of grader has a `type` of its own."""
        return str(getattr(self, "type", "grader"))

    @property
    def label(self) -> str:
        return self.name or self.type_name


class AssertionOptions(GraderOptions):
    """What the graders of eval files have beside that. They pass from a score of 0.8 on."""

    required: bool = False
    """The trial fails without it, whatever its score is."""
    min_score: Share | None = None
    """The least score that passes it, instead of 0.8."""
    negate: bool = False
    """Its score is one less what it would be: what must not be so."""

    @property
    def passing_score(self) -> float:
        """The least score that passes it."""
        return PASS_FROM if self.min_score is None else self.min_score


def pattern_problem(path: OptionPath, pattern: str | None) -> Iterator[Problem]:
    """Yield what is wrong with a regular expression of Python."""
    try:
        re.compile(pattern or "")
    except (re.error, OverflowError, RecursionError) as error:
        yield path, f"not a regular expression: {error}"


def workspace_problem(path: OptionPath, name: str) -> Iterator[Problem]:
    """Yield what is wrong with a path of the workspace."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        yield path, f"{name!r} is outside the workspace"


def regex_problem(pattern: str, flags: str = "") -> str | None:
    """Return the problem of a regular expression, or `None` if JavaScript accepts it (ECMA-262, `new RegExp`)."""
    unknown = sorted(set(flags) - set(FLAGS))
    if unknown:
        problem = f"unknown flag {unknown[0]!r}, expected some of {FLAGS!r}"
    elif len(set(flags)) < len(flags):
        problem = f"a flag is there twice in {flags!r}"
    elif {"u", "v"} <= set(flags):
        problem = "the flags 'u' and 'v' exclude each other"
    else:
        problem = _pattern_problem(pattern, engine_flags(flags))
    return f"no regular expression as JavaScript knows them: {problem}" if problem else None


def engine_flags(flags: str) -> str:
    """Return the flags that change what a pattern matches."""
    return "".join(flag for flag in flags if flag in ENGINE_FLAGS)


def _pattern_problem(pattern: str, flags: str) -> str:
    try:
        regress.Regex(pattern, flags)
    except UnicodeEncodeError:
        return "it holds half of a character"
    except regress.RegressError as error:
        hint = "; give the i as a flag instead" if pattern.startswith("(?i)") else ""
        return f"{error}{hint}"
    return ""


class FileCheck(Frozen):
    """One file of the workspace."""

    file: Text
    exists: bool = True
    equals: str | None = None
    contains: tuple[Text, ...] = ()
    not_contains: tuple[Text, ...] = ()
    matches: Text | None = None
    """A regular expression found somewhere in the file."""

    @property
    def is_prohibition(self) -> bool:
        """Whether it says what must not be, and nothing else."""
        demands = self.equals is not None or self.contains or self.matches is not None
        return not self.exists or bool(self.not_contains and not demands)

    def problems(self) -> Iterator[Problem]:
        yield from pattern_problem(("matches",), self.matches)
        yield from workspace_problem(("file",), self.file)


class JsonCheck(Frozen):
    """One value of a JSON file of the workspace."""

    json_file: Text
    path: str = ""
    """Keys and list indices with dots, as in `orders.0.status`; empty for the whole document."""
    equals: Any = None
    one_of: tuple[Any, ...] = ()
    absent: bool = False
    """The path must not be there."""

    @property
    def is_prohibition(self) -> bool:
        return self.absent

    def problems(self) -> Iterator[Problem]:
        yield from workspace_problem(("json_file",), self.json_file)
        if not self.model_fields_set & {"equals", "one_of", "absent"}:
            yield (), "this check cannot fail: give at least one of equals, one_of, absent"


class SqliteCheck(Frozen):
    """One query of a SQLite database of the workspace. Give `rows`, `value`, `min_rows` or `max_rows`."""

    sqlite: Text
    query: Text
    rows: tuple[tuple[Any, ...], ...] | None = None
    """The whole result, in order."""
    value: Any = None
    """The first column of the first row."""
    min_rows: Count | None = None
    max_rows: Count | None = None

    @property
    def is_prohibition(self) -> bool:
        others = self.rows is not None or "value" in self.model_fields_set or self.min_rows
        return self.max_rows is not None and not others

    def problems(self) -> Iterator[Problem]:
        yield from workspace_problem(("sqlite",), self.sqlite)
        if not self.model_fields_set & {"rows", "value", "min_rows", "max_rows"}:
            yield (), "this check cannot fail: give at least one of rows, value, min_rows, max_rows"


class CommandCheck(Frozen):
    """One command for `sh -c`, run in the workspace."""

    command: Text
    exit_code: int = 0
    stdout_equals: str | None = None
    stdout_contains: tuple[Text, ...] = ()
    stdout_matches: Text | None = None
    timeout_seconds: Seconds = 60
    is_prohibition: ClassVar = False

    def problems(self) -> Iterator[Problem]:
        yield from pattern_problem(("stdout_matches",), self.stdout_matches)
