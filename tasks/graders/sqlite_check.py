"""Queries against a SQLite database that the agent left behind."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from passgate.tasks.graders.texts import as_json, shorten
from passgate.tasks.graders.workspace import is_present, read_bytes
from passgate.tasks.model.grade import Check
from passgate.tasks.model.graders import SqliteCheck
from passgate.tasks.model.json_values import strictly_equal

QUERY_SECONDS: Final = 5.0
MOST_ROWS: Final = 10_000
"""Rows beyond this, and beyond what the check asks for, are not counted."""
LONGEST_VALUE: Final = 1_000_000
"""Bytes of one value or row."""
_STEPS_BETWEEN_LOOKS_AT_THE_CLOCK: Final = 10_000


class Answer(NamedTuple):
    """The first rows of a result and how many rows it has, counted no further than asked."""

    rows: list[tuple[Any, ...]]
    total: int


def check_sqlite(check: SqliteCheck, workspace: Path, scratch: Path) -> Check:
    """Whether a query of a database of the workspace answers as expected.

    A missing database or table, any other error of SQLite and more than `QUERY_SECONDS` are a failed check.
    Raises `UnusableFileError` when the database file must not be read.
    """
    subject = f"{check.sqlite}: {check.query}"
    try:
        with _copy(workspace, check.sqlite, scratch) as database, closing(_connect(database)) as connection:
            problem = _problem(check, _ask(connection, check))
    except (sqlite3.Error, sqlite3.Warning) as error:
        took_too_long = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT
        reason = f"did not end within {QUERY_SECONDS:g} seconds" if took_too_long else f"failed: {error}"
        return Check(passed=False, message=shorten(f"{subject}: {reason}"))
    message = f"{subject}: {problem}" if problem else f"{subject}: as expected"
    return Check(passed=not problem, message=shorten(message))


@contextmanager
def _copy(workspace: Path, relative: str, scratch: Path) -> Iterator[Path]:
    # SQLite opens files beside the database by their names; there the agent may have left a FIFO or a link.
    with TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
        database = Path(folder) / "copy.db"
        database.write_bytes(read_bytes(workspace, relative))
        if is_present(workspace, f"{relative}-wal"):
            database.with_name("copy.db-wal").write_bytes(read_bytes(workspace, f"{relative}-wal"))
        yield database


def _connect(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _ask(connection: sqlite3.Connection, check: SqliteCheck) -> Answer:
    deadline = time.monotonic() + QUERY_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS_AT_THE_CLOCK)
    kept = len(check.rows) + 1 if check.rows is not None else 1
    most = max(MOST_ROWS, kept, check.min_rows or 0, (check.max_rows or 0) + 1)
    rows = islice(connection.execute(check.query), most)
    kept_rows = list(islice(rows, kept))
    total = len(kept_rows) + sum(1 for _ in rows)
    return Answer(kept_rows, total)


def _problem(check: SqliteCheck, answer: Answer) -> str:
    """What is wrong with an answer; empty when it is as expected."""
    if check.rows is not None and not strictly_equal(answer.rows, check.rows):
        more = f" and {answer.total - len(answer.rows)} more" if answer.total > len(answer.rows) else ""
        return f"the rows are {as_json(answer.rows)}{more}, expected {as_json(check.rows)}"
    if "value" in check.model_fields_set:
        if not answer.rows:
            return f"the query returned no row, expected {as_json(check.value)}"
        if not strictly_equal(answer.rows[0][0], check.value):
            return f"the value is {as_json(answer.rows[0][0])}, expected {as_json(check.value)}"
    if check.min_rows is not None and answer.total < check.min_rows:
        return f"the query returned {answer.total} rows, expected at least {check.min_rows}"
    if check.max_rows is not None and answer.total > check.max_rows:
        return f"the query returned {answer.total} rows or more, expected at most {check.max_rows}"
    return ""
