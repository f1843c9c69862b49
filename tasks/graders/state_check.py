"""The state that the agent left behind: files, JSON, SQLite, the output of commands."""

import asyncio
import sqlite3
import time
from contextlib import closing
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, assert_never

from passgate.tasks.errors import Raw
from passgate.tasks.graders.evidence import Evidence, checks_grade, gather_checks
from passgate.tasks.graders.searches import found, look_alike, match_hint
from passgate.tasks.graders.workspace import (
    UnusableFileError,
    is_present,
    read_bytes,
    read_text,
    regular_file,
    run_shell,
)
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.grader_options import CommandCheck, FileCheck, JsonCheck, SqliteCheck
from passgate.tasks.model.graders import StateCheck
from passgate.tasks.model.json_values import MISSING, at_path, parse_json, strictly_equal
from passgate.tasks.model.quotes import quote_end, quote_json, quote_repr, raw
from passgate.tasks.model.sandbox import Sandbox

QUERY_SECONDS: Final = 5.0
MOST_ROWS: Final = 10_000  # Rows beyond this, and beyond what the check asks for, are not counted
LONGEST_VALUE: Final = 1_000_000  # Bytes of one value or row
_STEPS_BETWEEN_LOOKS_AT_THE_CLOCK: Final = 10_000


async def grade_state(options: StateCheck, evidence: Evidence) -> RawGrade:
    """Run the commands of `run`, then look at everything that is expected. The score is the share that holds.

    A file that is missing or must not be read, a query that cannot be answered and a command that does not
    end in time are failed checks. Raises `MeasurementError` when a command's program is not installed.
    """
    hanging = []
    for command in options.run:
        result = await run_shell(evidence.sandbox, command, seconds=options.timeout_seconds)
        # How a command ends otherwise does not matter: what it leaves behind is looked at.
        if result.timed_out:
            hanging.append(_hangs(command, options.timeout_seconds))
    checks = await gather_checks(_check(expectation, evidence.sandbox) for expectation in options.expect)
    return checks_grade(options, [*hanging, *checks])


def _hangs(command: str, seconds: float) -> RawCheck:
    return RawCheck(passed=False, message=f"`{command}` did not end within {seconds:g} seconds")


async def _check(expectation: FileCheck | JsonCheck | SqliteCheck | CommandCheck, sandbox: Sandbox) -> RawCheck:
    try:
        match expectation:
            case FileCheck():
                subject = f"{expectation.file} "
                problem = await _file_problem(expectation, sandbox.workspace)
            case JsonCheck():
                subject = f"{expectation.json_file}: {expectation.path or 'the document'} "
                problem = await asyncio.to_thread(_json_problem, expectation, sandbox.workspace)
            case SqliteCheck():
                subject = f"{expectation.sqlite}: {expectation.query}: "
                problem = await asyncio.to_thread(_sqlite_problem, expectation, sandbox.workspace, sandbox.scratch)
            case CommandCheck():
                return await _check_command(expectation, sandbox)
            case _:
                assert_never(expectation)
    except UnusableFileError as error:
        return RawCheck(passed=False, message=str(error))
    fine = "as expected" if isinstance(expectation, SqliteCheck) else "is as expected"
    return RawCheck(passed=not problem, message=raw(subject, problem or fine))


async def _file_problem(check: FileCheck, workspace: Path) -> Raw:
    """Return what is wrong with a file; empty when it is as expected."""
    if not check.exists:
        return "exists, but must not" if await asyncio.to_thread(is_present, workspace, check.file) else ""
    await asyncio.to_thread(regular_file, workspace, check.file)
    # A file that need only be there may be larger than what is read, and need not be text.
    if check.equals is None and check.matches is None and not check.contains and not check.not_contains:
        return ""
    text = await asyncio.to_thread(read_text, workspace, check.file)
    return await _text_problem(text, check.equals, check.contains, check.matches) or next(
        (f"contains {unwanted!r}, but must not" for unwanted in check.not_contains if unwanted in text), ""
    )


async def _text_problem(text: str, equals: str | None, contains: tuple[str, ...], matches: str | None) -> Raw:
    if equals is not None and text != equals:
        alike = look_alike(equals, text, whole=True)
        return raw("is ", quote_repr(text, 500), ", expected ", quote_repr(equals, 500), alike)
    missing = next((wanted for wanted in contains if wanted not in text), None)
    if missing is not None:
        return raw(f"does not contain {missing!r}", look_alike(missing, text))
    if matches is None or await found(matches, text):
        return ""
    return f"does not match {matches!r}{await match_hint(matches, text)}"


def _json_problem(check: JsonCheck, workspace: Path) -> Raw:
    """Return what is wrong with a value of a JSON file; empty when it is as expected."""
    try:
        value = at_path(parse_json(read_text(workspace, check.json_file)), check.path)
    except ValueError as error:
        raise UnusableFileError(f"{check.json_file} is not JSON: {error}") from None
    if check.absent:
        return "" if value is MISSING else raw("is ", quote_json(value), ", but must not exist")
    if value is MISSING:
        return "does not exist"
    # A wanted null is given, too; only what the task file does not say is not wanted.
    if "equals" in check.model_fields_set and not strictly_equal(value, check.equals):
        return raw("is ", quote_json(value), ", expected ", quote_json(check.equals))
    if check.one_of and not any(strictly_equal(value, wanted) for wanted in check.one_of):
        return raw("is ", quote_json(value), ", expected one of ", quote_json(check.one_of))
    return ""


def _sqlite_problem(check: SqliteCheck, workspace: Path, scratch: Path) -> Raw:
    """Return what is wrong with what a database answers, be it an error or no answer within `QUERY_SECONDS`; empty when
    it is as expected. Raises `UnusableFileError` when the database file must not be read.
    """
    try:
        # SQLite opens files beside the database by their names; there the agent may have left a FIFO or a link.
        with TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
            database = Path(folder) / "copy.db"
            database.write_bytes(read_bytes(workspace, check.sqlite))
            # The newest rows may lie in the write-ahead log alone.
            if is_present(workspace, f"{check.sqlite}-wal"):
                database.with_name("copy.db-wal").write_bytes(read_bytes(workspace, f"{check.sqlite}-wal"))
            with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
                return _answer_problem(check, *_ask(connection, check))
    except (sqlite3.Error, sqlite3.Warning) as error:
        took_too_long = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT
        return f"did not end within {QUERY_SECONDS:g} seconds" if took_too_long else f"failed: {error}"


def _ask(connection: sqlite3.Connection, check: SqliteCheck) -> tuple[list[tuple[Any, ...]], int]:
    """Return the first rows of the result and how many rows it has, counted no further than asked."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    # The agent made the schema: its views and triggers may not call functions with side effects.
    connection.execute("PRAGMA trusted_schema = OFF")
    deadline = time.monotonic() + QUERY_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS_AT_THE_CLOCK)
    # One row more than expected, so that the message shows one that is too many.
    kept = len(check.rows) + 1 if check.rows is not None else 1
    most = max(MOST_ROWS, kept, check.min_rows or 0, (check.max_rows or 0) + 1)
    rows = islice(connection.execute(check.query), most)
    kept_rows = list(islice(rows, kept))
    return kept_rows, len(kept_rows) + sum(1 for _ in rows)


def _answer_problem(check: SqliteCheck, rows: list[tuple[Any, ...]], total: int) -> Raw:
    if check.rows is not None and not strictly_equal(rows, check.rows):
        more = f" and {total - len(rows)} more" if total > len(rows) else ""
        return raw("the rows are ", quote_json(rows), f"{more}, expected ", quote_json(check.rows))
    if "value" in check.model_fields_set:
        if not rows:
            return raw("the query returned no row, expected ", quote_json(check.value))
        if not strictly_equal(rows[0][0], check.value):
            return raw("the value is ", quote_json(rows[0][0]), ", expected ", quote_json(check.value))
    if check.min_rows is not None and total < check.min_rows:
        return f"the query returned {total} rows, expected at least {check.min_rows}"
    if check.max_rows is not None and total > check.max_rows:
        return f"the query returned {total} rows or more, expected at most {check.max_rows}"
    return ""


async def _check_command(check: CommandCheck, sandbox: Sandbox) -> RawCheck:
    result = await run_shell(sandbox, check.command, seconds=check.timeout_seconds)
    if result.timed_out:
        return _hangs(check.command, check.timeout_seconds)
    problem: Raw
    if result.output_limit_hit:
        problem = "it printed more than passgate keeps"
    elif result.exit_code != check.exit_code:
        said = quote_end(result.stderr, 500) or quote_end(result.stdout, 500)
        problem = raw(f"exit code {result.exit_code}, expected {check.exit_code}", ": " if said else "", said)
    else:
        problem = await _text_problem(result.stdout, check.stdout_equals, check.stdout_contains, check.stdout_matches)
        problem = raw("its output ", problem) if problem else ""
    if not problem:
        return RawCheck(passed=True, message=f"`{check.command}` is as expected")
    return RawCheck(passed=False, message=raw(f"`{check.command}`: ", problem))
