import json
import os
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import StateCheck
from tests.unit.graders.trials import Files, Graded


def options(*expect: dict[str, Any], **fields: Any) -> StateCheck:
    return StateCheck.model_validate({"type": "state_check", "expect": expect, **fields})


def outcome(result: Grade) -> tuple[bool, float | None, str | None]:
    return result.passed, result.score, result.error


async def test_the_score_is_the_share_of_what_holds(graded: Graded, leave: Files) -> None:
    leave({"a.txt": "a", "b.txt": "b"})
    result = await graded(
        options({"file": "a.txt", "equals": "a"}, {"file": "b.txt", "equals": "a"}, {"file": "c.txt"})
    )
    assert result.score == pytest.approx(1 / 3)
    assert [one.message for one in result.checks] == [
        "a.txt is as expected",
        "b.txt is 'b', expected 'a'",
        "c.txt does not exist",
    ]


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        ({}, True),
        ({"equals": "one\ntwo\n"}, True),
        ({"equals": "one\ntwo"}, False),
        ({"contains": ["one", "two"]}, True),
        ({"contains": ["one", "three"]}, False),
        ({"not_contains": ["three"]}, True),
        ({"not_contains": ["three", "two"]}, False),
        ({"matches": "(?m)^t.o$"}, True),
        ({"matches": "^two$"}, False),
        ({"exists": False}, False),
    ],
)
async def test_files(wanted: dict[str, Any], passes: bool, check: Graded, leave: Files) -> None:
    leave({"sub/notes.txt": "one\ntwo\n"})
    assert (await check(file="sub/notes.txt", **wanted)).passed is passes


@pytest.mark.parametrize("name", ["gone.txt", "notes.txt/gone.txt", "gone/gone.txt"])
async def test_files_that_are_not_there(name: str, check: Graded, leave: Files) -> None:
    leave({"notes.txt": ""})
    assert not (await check(file=name)).passed
    assert not (await check(file=name, not_contains=["x"])).passed
    assert (await check(file=name, exists=False)).passed


async def test_line_ends_are_compared_as_they_are(check: Graded, workspace: Path) -> None:
    (workspace / "notes.txt").write_bytes(b"one\r\n")
    assert not (await check(file="notes.txt", equals="one\n")).passed
    assert (await check(file="notes.txt", equals="one\r\n")).passed


async def test_a_file_that_is_not_text_is_a_failed_check(check: Graded, workspace: Path) -> None:
    (workspace / "notes.txt").write_bytes(b"\xff\xfe")
    assert (await check(file="notes.txt")).passed
    failed = await check(file="notes.txt", not_contains=["x"])
    assert (failed.passed, failed.message) == (False, "notes.txt is not UTF-8 text")


@pytest.mark.parametrize("kind", ["file", "json_file", "sqlite"])
async def test_a_link_out_of_the_workspace_is_a_failed_check(
    kind: str, check: Graded, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("{}")
    (workspace / "link").symlink_to(tmp_path / "outside")
    (workspace / "folder").symlink_to(tmp_path)
    query = {"query": "SELECT 1"} if kind == "sqlite" else {}
    for name in ("link", "folder/outside", "../outside", str(tmp_path / "outside")):
        failed = await check(**{kind: name}, **query)
        assert (failed.passed, failed.message) == (False, f"{name} is outside the workspace")


async def test_a_link_inside_the_workspace_may_be_followed(check: Graded, leave: Files, workspace: Path) -> None:
    leave({"real.txt": "here"})
    (workspace / "link").symlink_to("real.txt")
    assert (await check(file="link", equals="here")).passed


@pytest.mark.parametrize("target", ["gone", "link"])
async def test_a_link_that_leads_nowhere_is_there_but_is_no_file(target: str, check: Graded, workspace: Path) -> None:
    (workspace / "link").symlink_to(target)
    assert not (await check(file="link")).passed
    assert not (await check(file="link", exists=False)).passed


async def test_absence_is_not_looked_for_outside(check: Graded, workspace: Path, tmp_path: Path) -> None:
    (workspace / "folder").symlink_to(tmp_path)
    assert not (await check(file="folder/gone", exists=False)).passed


@pytest.mark.parametrize("kind", ["file", "json_file", "sqlite"])
@pytest.mark.parametrize("special", ["fifo", "folder", "device"])
async def test_what_is_not_a_regular_file_is_never_opened(
    special: str, kind: str, check: Graded, workspace: Path
) -> None:
    if special == "fifo":
        os.mkfifo(workspace / "thing")
    elif special == "folder":
        (workspace / "thing").mkdir()
    else:
        try:
            os.mknod(workspace / "thing", 0o20666, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("only root makes devices")
    query = {"query": "SELECT 1"} if kind == "sqlite" else {}
    failed = await check(**{kind: "thing"}, **query)
    assert (failed.passed, failed.message) == (False, "thing is not a regular file")


async def test_a_file_that_is_too_large_is_not_read(check: Graded, workspace: Path) -> None:
    with (workspace / "large").open("wb") as file:
        file.truncate(50_000_000_000)
    assert (await check(file="large")).passed
    failed = await check(file="large", not_contains=["x"])
    assert (failed.passed, failed.message) == (False, "large is larger than 10 MB")


DOCUMENT = {"orders": [{"id": 1, "paid": True, "note": None}], "total": 1.0, "dots": {"a": {"b": [1, 2]}}}


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        ({"path": "orders.0.id", "equals": 1}, True),
        ({"path": "orders.0.id", "equals": 1.0}, True),
        ({"path": "orders.0.id", "equals": True}, False),
        ({"path": "orders.0.id", "equals": "1"}, False),
        ({"path": "orders.0.paid", "equals": True}, True),
        ({"path": "orders.0.paid", "equals": 1}, False),
        ({"path": "orders.0.note", "equals": None}, True),
        ({"path": "orders.0.id", "equals": None}, False),
        ({"path": "orders.0.note", "equals": False}, False),
        ({"path": "orders.0.note"}, True),
        ({"path": "orders.1.id"}, False),
        ({"path": "orders.-1.id"}, False),
        ({"path": "orders.\u0660.id"}, False),
        ({"path": "orders.id"}, False),
        ({"path": "total", "equals": 1}, True),
        ({"path": "total", "one_of": [0, 1]}, True),
        ({"path": "total", "one_of": [True, "1"]}, False),
        ({"path": "total", "absent": True}, False),
        ({"path": "orders.0.name", "absent": True}, True),
        ({"path": "orders.0.note", "absent": True}, False),
        ({"path": "dots.a", "equals": {"b": [1, 2]}}, True),
        ({"path": "dots.a", "equals": {"b": [2, 1]}}, False),
        ({"path": "dots.a", "equals": {"b": [1, 2], "c": 3}}, False),
        ({"equals": DOCUMENT}, True),
        ({"equals": {}}, False),
    ],
)
async def test_json(wanted: dict[str, Any], passes: bool, check: Graded, leave: Files) -> None:
    leave({"state.json": json.dumps(DOCUMENT)})
    assert (await check(json_file="state.json", **wanted)).passed is passes


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


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        ({"command": "true"}, True),
        ({"command": "false"}, False),
        ({"command": "exit 3", "exit_code": 3}, True),
        ({"command": "echo hello", "stdout_equals": "hello\n"}, True),
        ({"command": "echo hello", "stdout_equals": "hello"}, False),
        ({"command": "echo hello", "stdout_contains": ["hell", "o"]}, True),
        ({"command": "echo hello", "stdout_contains": ["hell", "x"]}, False),
        ({"command": "echo hello >&2", "stdout_contains": ["hello"]}, False),
        ({"command": "echo hello", "stdout_matches": "^h.*o$"}, True),
        ({"command": "echo hello", "stdout_matches": "^e"}, False),
        ({"command": "cat made.txt", "stdout_equals": "made"}, True),
        ({"command": "./not-made"}, False),
        ({"command": "./made.txt"}, False),
    ],
)
async def test_commands(wanted: dict[str, Any], passes: bool, check: Graded, leave: Files) -> None:
    leave({"made.txt": "made"})
    assert (await check(**wanted)).passed is passes


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"command": "sleep 600", "timeout_seconds": 0.2}, "`sleep 600` did not end within 0.2 seconds"),
        (
            {"command": "head -c 1000000 /dev/zero", "stdout_matches": "x?"},
            "`head -c 1000000 /dev/zero`: it printed more than passgate keeps",
        ),
    ],
)
async def test_a_command_that_goes_too_far_is_a_failed_check(wanted: Any, says: str, check: Graded) -> None:
    failed = await check(**wanted)
    assert (failed.passed, failed.message) == (False, says)


async def test_a_program_that_is_not_installed_is_an_error(graded: Graded) -> None:
    expected = "`no-such-program -x` cannot be run: no-such-program is not installed"
    result = await graded(options({"command": "no-such-program -x"}))
    assert outcome(result) == (False, None, expected)
    result = await graded(options({"file": "gone", "exists": False}, run=["no-such-program -x"]))
    assert outcome(result) == (False, None, expected)


async def test_a_failed_check_is_certain_beside_a_program_that_is_not_installed(graded: Graded) -> None:
    result = await graded(options({"command": "no-such-program"}, {"file": "gone"}))
    assert outcome(result) == (False, 0.0, None)


async def test_commands_run_before_the_checks_in_their_order(graded: Graded) -> None:
    log = {"file": "log", "equals": "1\n2\n"}
    result = await graded(options(log, run=["echo 1 >> log; exit 5", "echo 2 >> log"]))
    assert outcome(result) == (True, 1.0, None)


async def test_a_command_of_the_agent_that_is_not_there_does_not_matter_by_itself(graded: Graded) -> None:
    result = await graded(options({"file": "gone", "exists": False}, run=["./migrate"]))
    assert outcome(result) == (True, 1.0, None)


async def test_a_preparing_command_that_hangs_is_a_failed_check(graded: Graded) -> None:
    result = await graded(options({"file": "gone", "exists": False}, run=["sleep 600"], timeout_seconds=0.2))
    assert outcome(result) == (False, 0.5, None)
    assert result.checks[0].message == "`sleep 600` did not end within 0.2 seconds"


async def test_messages_are_bounded(check: Graded, leave: Files) -> None:
    leave({"a.txt": "x" * 1_000_000})
    assert len((await check(file="a.txt", equals="a")).message) < 2100
