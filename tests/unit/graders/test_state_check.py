"""Files, JSON files, SQLite databases and commands in the workspace after a trial."""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.graders import state_check
from tests.unit.graders.options import state
from tests.unit.graders.trials import Files, Graded

Database = Callable[[str], None]


async def test_the_score_is_the_share_of_what_holds(graded: Graded, leave: Files) -> None:
    leave({"a.txt": "a", "b.txt": "b"})
    expect = [{"file": "a.txt", "equals": "a"}, {"file": "b.txt", "equals": "a"}, {"file": "c.txt"}]
    result = await graded(state(*expect))
    assert result.score == pytest.approx(1 / 3)
    assert [one.message for one in result.checks] == [
        "a.txt is as expected",
        "b.txt is 'b', expected 'a'",
        "c.txt does not exist",
    ]


DOCUMENT = {"orders": [{"id": 1, "paid": True, "note": None}], "total": 1.0, "dots": {"a": {"b": [1, 2]}}}
SCHEMA = """
CREATE TABLE orders (id INTEGER, status TEXT, total REAL, note TEXT);
INSERT INTO orders VALUES (1, 'paid', 9.5, NULL), (2, 'open', 1.0, 'x');
"""
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
VIEWS = f"""
CREATE VIEW numbers AS {NUMBERS} WHERE i < 20000) SELECT i FROM n;
CREATE VIEW endless AS {NUMBERS}) SELECT i FROM n;
"""


def notes(**wanted: Any) -> dict[str, Any]:
    return {"file": "sub/notes.txt", **wanted}


def document(**wanted: Any) -> dict[str, Any]:
    return {"json_file": "state.json", **wanted}


def query(text: str, **wanted: Any) -> dict[str, Any]:
    return {"sqlite": "app.db", "query": text, **wanted}


@pytest.fixture
def database(workspace: Path) -> Database:
    def make(script: str) -> None:
        with closing(sqlite3.connect(workspace / "app.db")) as connection:
            connection.executescript(script)

    return make


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        *((notes(), True), (notes(equals="one\ntwo\r\n"), True), (notes(equals="one\ntwo\n"), False)),
        *((notes(contains=["one", "two"]), True), (notes(contains=["one", "three"]), False)),
        *((notes(not_contains=["three"]), True), (notes(not_contains=["three", "two"]), False)),
        *((notes(matches="(?m)^t.o\r$"), True), (notes(matches="^two$"), False), (notes(exists=False), False)),
        *((document(path="orders.0.id", equals=1), True), (document(path="orders.0.id", equals=True), False)),
        (document(path="orders.0.note", equals=None), True),
        *((document(path="orders.0.id", equals=None), False), (document(path="orders.0.note"), True)),
        *((document(path="orders.1.id"), False), (document(path="total", one_of=[0, 1]), True)),
        (document(path="total", one_of=[True, "1"]), False),
        (document(path="total", absent=True), False),
        (document(path="orders.0.name", absent=True), True),
        (document(path="orders.0.note", absent=True), False),
        (document(path="dots.a", equals={"b": [1, 2]}), True),
        *((document(equals=DOCUMENT), True), ({"command": "true"}, True), ({"command": "false"}, False)),
        ({"command": "exit 3", "exit_code": 3}, True),
        ({"command": "echo hello", "stdout_equals": "hello\n"}, True),
        ({"command": "echo hello", "stdout_equals": "hello"}, False),
        ({"command": "echo hello", "stdout_contains": ["hell", "o"]}, True),
        ({"command": "echo hello", "stdout_contains": ["hell", "x"]}, False),
        ({"command": "echo hello >&2", "stdout_contains": ["hello"]}, False),
        ({"command": "echo hello", "stdout_matches": "^h.*o$"}, True),
        ({"command": "echo hello", "stdout_matches": "^e"}, False),
        ({"command": "cat made.txt", "stdout_equals": "made"}, True),
        *(({"command": "./not-made"}, False), ({"command": "./made.txt"}, False)),
        (query("SELECT id, status FROM orders ORDER BY id", rows=[[1, "paid"], [2, "open"]]), True),
        (query("SELECT id, status FROM orders ORDER BY id", rows=[[2, "open"], [1, "paid"]]), False),
        (query("SELECT id FROM orders ORDER BY id", rows=[[1], [2], [3]]), False),
        (query("SELECT id FROM orders WHERE id = 9", rows=[]), True),
        (query("SELECT id FROM orders", rows=[]), False),
        (query("SELECT count(*) FROM orders", value=2), True),
        (query("SELECT id FROM orders WHERE id = 1", value=True), False),
        (query("SELECT note FROM orders WHERE id = 1", value=None), True),
        (query("SELECT note FROM orders WHERE id = 9", value=None), False),
        (query("SELECT id FROM orders", min_rows=2), True),
        (query("SELECT id FROM orders", min_rows=3), False),
        (query("SELECT id FROM orders", max_rows=2), True),
        (query("SELECT id FROM orders", max_rows=1), False),
        (query("SELECT id FROM orders", max_rows=0), False),
        (query("SELECT i FROM numbers", min_rows=20_000), True),
        (query("SELECT i FROM numbers", min_rows=20_001), False),
        (query("SELECT i FROM numbers", max_rows=20_000), True),
        (query("SELECT i FROM numbers", max_rows=19_999), False),
        (query("SELECT i FROM endless", max_rows=5), False),
        (query("SELECT i FROM endless", rows=[[1], [2]]), False),
    ],
)
async def test_the_state_is_held_to_what_is_wanted(
    wanted: Any, passes: bool, check: Graded, leave: Files, database: Database
) -> None:
    leave({"state.json": json.dumps(DOCUMENT), "made.txt": "made", "sub/notes.txt": "one\ntwo\r\n"})
    if "sqlite" in wanted:
        database(SCHEMA + VIEWS)
    assert (await check(**wanted)).passed is passes


@pytest.mark.parametrize("name", ["gone.txt", "notes.txt/gone.txt", "gone/gone.txt"])
async def test_files_that_are_not_there(name: str, check: Graded, leave: Files) -> None:
    leave({"notes.txt": ""})
    assert not (await check(file=name)).passed
    assert not (await check(file=name, not_contains=["x"])).passed
    assert (await check(file=name, exists=False)).passed


async def test_a_file_that_is_not_text_or_is_too_large_is_a_failed_check(check: Graded, workspace: Path) -> None:
    (workspace / "binary").write_bytes(b"\xff\xfe")
    with (workspace / "large").open("wb") as file:
        file.truncate(50_000_000_000)
    for name, problem in (("binary", "is not UTF-8 text"), ("large", "is larger than 10 MB")):
        assert (await check(file=name)).passed
        failed = await check(file=name, not_contains=["x"])
        assert (failed.passed, failed.message) == (False, f"{name} {problem}")


def of(kind: str, name: str) -> dict[str, str]:
    return {kind: name, **({"query": "SELECT 1"} if kind == "sqlite" else {})}


@pytest.mark.parametrize("kind", ["file", "json_file", "sqlite"])
async def test_a_link_out_of_the_workspace_fails(kind: str, check: Graded, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("{}")
    (workspace / "link").symlink_to(tmp_path / "outside")
    (workspace / "folder").symlink_to(tmp_path)
    for name in ("link", "folder/outside", "../outside", "../work space 2/x", "..", str(tmp_path / "outside")):
        failed = await check(**of(kind, name))
        assert (failed.passed, failed.message) == (False, f"{name} is outside the workspace")
    assert not (await check(file="folder/gone", exists=False)).passed, "absence is not looked for outside"


async def test_a_link_inside_the_workspace_may_be_followed(check: Graded, leave: Files, workspace: Path) -> None:
    leave({"real.txt": "here"})
    (workspace / "link").symlink_to("real.txt")
    assert (await check(file="link", equals="here")).passed


@pytest.mark.parametrize("target", ["gone", "link"])
async def test_a_link_that_leads_nowhere_is_there_but_is_no_file(target: str, check: Graded, workspace: Path) -> None:
    (workspace / "link").symlink_to(target)
    assert not (await check(file="link")).passed
    assert not (await check(file="link", exists=False)).passed


@pytest.mark.parametrize("kind", ["file", "json_file", "sqlite"])
@pytest.mark.parametrize("special", ["fifo", "folder", "device"])
async def test_what_is_no_regular_file_is_not_opened(special: str, kind: str, check: Graded, workspace: Path) -> None:
    if special == "fifo":
        os.mkfifo(workspace / "thing")
    elif special == "folder":
        (workspace / "thing").mkdir()
    else:
        try:
            os.mknod(workspace / "thing", 0o20666, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only root makes devices")
    failed = await check(**of(kind, "thing"))
    assert (failed.passed, failed.message) == (False, "thing is not a regular file")


async def test_messages_are_bounded(check: Graded, leave: Files) -> None:
    leave({"a.txt": "x" * 1_000_000})
    assert len((await check(file="a.txt", equals="a")).message) < 2100


async def test_a_json_check_says_what_it_found(check: Graded, leave: Files) -> None:
    leave({"state.json": json.dumps(DOCUMENT)})
    failed = await check(json_file="state.json", path="orders.0.id", equals="x")
    assert failed.message == 'state.json: orders.0.id is 1, expected "x"'


@pytest.mark.parametrize(
    "text", ["", "{", "{} {}", "NaN", '{"a": Infinity}', "[" * 1_000_000, "1" * 10_000], ids=lambda text: text[:5]
)
async def test_what_is_not_json_is_a_failed_check(text: str, check: Graded, leave: Files) -> None:
    leave({"state.json": text})
    for wanted in ({"path": "a", "absent": True}, {"path": "a"}):
        failed = await check(json_file="state.json", **wanted)
        assert not failed.passed
        assert failed.message.startswith("state.json is not JSON: ")


async def test_a_path_is_not_absent_from_a_file_that_is_not_there(check: Graded) -> None:
    assert not (await check(json_file="gone.json", path="a", absent=True)).passed


SLEEPS = "`sleep 600` did not end within 0.2 seconds"
FLOODS = "`head -c 1000000 /dev/zero`: it printed more than passgate keeps"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"command": "sleep 600", "timeout_seconds": 0.2}, SLEEPS),
        ({"command": "head -c 1000000 /dev/zero", "stdout_matches": "x?"}, FLOODS),
    ],
)
async def test_a_command_that_goes_too_far_is_a_failed_check(wanted: Any, says: str, check: Graded) -> None:
    failed = await check(**wanted)
    assert (failed.passed, failed.message) == (False, says)


GONE = {"file": "gone", "exists": False}
LOG = {"file": "log", "equals": "1\n2\n"}
MISSING = "`no-such-program -x` cannot be run: no-such-program is not installed"


@pytest.mark.parametrize(
    ("wanted", "score", "error"),
    [
        (state({"command": "no-such-program -x"}), None, MISSING),
        (state(GONE, run=["no-such-program -x"]), None, MISSING),
        (state({"command": "no-such-program"}, {"file": "gone"}), 0.0, None),
        (state(LOG, run=["echo 1 >> log; exit 5", "echo 2 >> log"]), 1.0, None),
        (state(GONE, run=["./migrate"]), 1.0, None),
        (state(GONE, run=["sleep 600"], timeout_seconds=0.2), 0.5, None),
    ],
    ids=[
        *["a program that is not installed", "not installed before the checks", "a failed check is certain beside it"],
        *["commands run first, in their order", "a command of the agent that is not there", "a command that hangs"],
    ],
)
async def test_commands_before_the_checks_and_programs_that_are_missing(
    wanted: dict[str, Any], score: float | None, error: str | None, graded: Graded
) -> None:
    result = await graded(wanted)
    assert (result.passed, result.score, result.error) == (score == 1.0, score, error)
    assert (result.score == 0.5) is (SLEEPS in [check.message for check in result.checks])


@pytest.fixture
def ask(check: Graded) -> Graded:
    """The check of what a query gives."""
    return lambda text, **wanted: check(**query(text, **wanted))


async def test_a_missing_database_is_a_failed_check_and_is_not_made(ask: Graded, workspace: Path) -> None:
    failed = await ask("SELECT 1", value=1)
    assert (failed.passed, failed.message) == (False, "app.db does not exist")
    assert not list(workspace.iterdir())


@pytest.mark.parametrize(
    ("script", "query", "says"),
    [
        (SCHEMA, "SELECT 1 FROM customers", "app.db: SELECT 1 FROM customers: failed: no such table: customers"),
        ("CREATE VIEW orders AS SELECT zeroblob(900000000) AS total", "SELECT total FROM orders", "too big"),
        (
            SCHEMA,
            "SELECT status FROM orders WHERE id = 1",
            'app.db: SELECT status FROM orders WHERE id = 1: the value is "paid", expected 1',
        ),
    ],
    ids=["no table", "a huge value", "another value"],
)
async def test_a_failed_check_says_what_was_found(
    script: str, query: str, says: str, ask: Graded, database: Database
) -> None:
    database(script)
    failed = await ask(query, value=1)
    assert not failed.passed
    assert says in failed.message


async def test_a_file_that_is_no_database_is_a_failed_check(ask: Graded, leave: Files) -> None:
    leave({"app.db": "no database at all\n" * 100})
    failed = await ask("SELECT 1 FROM orders", value=1)
    assert not failed.passed
    assert "file is not a database" in failed.message


@pytest.mark.parametrize("query", ["DELETE FROM orders", "DROP TABLE orders", "SELECT 1; DELETE FROM orders"])
async def test_a_query_cannot_change_the_state(query: str, ask: Graded, database: Database) -> None:
    database(SCHEMA)
    assert not (await ask(query)).passed
    assert (await ask("SELECT count(*) FROM orders", value=2)).passed


async def test_looking_leaves_nothing_behind(ask: Graded, database: Database, workspace: Path) -> None:
    database("PRAGMA journal_mode = WAL;" + SCHEMA)
    before = {path.name: path.stat().st_mtime_ns for path in workspace.iterdir()}
    assert (await ask("SELECT count(*) FROM orders", value=2)).passed
    assert {path.name: path.stat().st_mtime_ns for path in workspace.iterdir()} == before
    assert not list((workspace.parent / "scratch").iterdir())


async def test_what_is_only_in_the_write_ahead_log_counts(ask: Graded, workspace: Path) -> None:
    with closing(sqlite3.connect(workspace / "app.db")) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" + SCHEMA)
        assert (workspace / "app.db-wal").stat().st_size > 0
        assert (await ask("SELECT count(*) FROM orders", value=2)).passed


async def test_a_fifo_in_the_place_of_the_log_is_not_opened(ask: Graded, database: Database, workspace: Path) -> None:
    database(SCHEMA)
    os.mkfifo(workspace / "app.db-wal")
    failed = await ask("SELECT 1", value=1)
    assert (failed.passed, failed.message) == (False, "app.db-wal is not a regular file")


@pytest.mark.parametrize(
    "view", ["SELECT count(*) AS total FROM n", "SELECT i AS total FROM n WHERE i < 0"], ids=["counts", "never finds"]
)
async def test_a_view_without_end_is_stopped(
    view: str, ask: Graded, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert state_check.QUERY_SECONDS == 5
    monkeypatch.setattr(state_check, "QUERY_SECONDS", 0.2)
    database(f"CREATE VIEW orders AS {NUMBERS}) {view}")
    failed = await ask("SELECT total FROM orders", value=1)
    assert not failed.passed
    assert failed.message.endswith("did not end within 0.2 seconds")
