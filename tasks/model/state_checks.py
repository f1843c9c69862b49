"""What a grader can check of the state that an agent left behind: files, JSON, SQLite, the output of commands."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from passgate.tasks.model.base import Count, Frozen, Seconds, Text
from passgate.tasks.model.grader_options import OptionPath, Problem


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
        """See `GraderOptions`."""
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
        """See `FileCheck`."""
        return self.absent

    def problems(self) -> Iterator[Problem]:
        """See `GraderOptions`."""
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
        """See `FileCheck`."""
        others = self.rows is not None or "value" in self.model_fields_set or self.min_rows
        return self.max_rows is not None and not others

    def problems(self) -> Iterator[Problem]:
        """See `GraderOptions`."""
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
        """See `GraderOptions`."""
        yield from pattern_problem(("stdout_matches",), self.stdout_matches)
