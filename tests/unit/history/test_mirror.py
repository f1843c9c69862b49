"""The mirror of a run's folder at a URL: what it copies, and who may run on."""

import logging
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.mirror import Mirror, fetch, new_holder
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.history.storage import RunTakenError, Storage, UnreachableError, storage_at
from passgate.tasks.model.quotes import Masker
from tests.builders import a_finished, a_plan, a_task
from tests.object_store import ObjectStore

NO_SECRETS = Masker([])
TASK = a_task()


@pytest.fixture(params=["file", "memory", "s3"])
def url(
    request: pytest.FixtureRequest, tmp_path: Path, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> str:
    """An empty place at a URL of this machine's files, and at those of object stores."""
    monkeypatch.chdir(tmp_path)
    places = {"file": f"file://{tmp_path}/elsewhere", "memory": f"memory://{tmp_path}"}
    return f"{places.get(request.param) or object_store.new_url()}/r1"


@pytest.fixture
def store(url: str) -> RunStore:
    """A run that was begun, with a mirror at the URL."""
    store = RunStore.new("r1", url.rpartition("/")[0])
    store.settle_here()
    store.write_plan(a_plan(TASK, run_id="r1"), NO_SECRETS)
    return store


async def append(store: RunStore, *trials: int) -> None:
    with store.open_journal() as journal:
        for trial in trials:
            await journal.append(a_finished(TASK, trial))


def mirror_of(store: RunStore) -> Mirror:
    assert store.url is not None
    return Mirror(store.here, store.url)


def on_another_machine(store: RunStore, folder: Path) -> RunStore:
    assert store.url is not None
    fetch(store.url, folder)
    return RunStore(folder, store.url)


def held_elsewhere(storage: Storage, **changes: object) -> None:
    """Write who holds a run, as another machine has left it."""
    holder = new_holder(3600).model_copy(update={"host": "elsewhere", "process": 7} | changes)
    storage.write("holder.json", holder.model_dump_json().encode())


async def test_another_machine_has_what_was_pushed_and_goes_on(store: RunStore, url: str, tmp_path: Path) -> None:
    store.write_file("snapshot/abc.tar.gz", b"packed")
    store.write_report("report/1.html", "page")
    store.change.write_plan(a_plan(TASK, run_id="r1/change"), NO_SECRETS)
    for unwanted in ("files/suites/a.yaml", "base/gates.yaml", "change/files/b"):
        store.write_file(unwanted, b"it can be made anew")
    await append(store, 0, 1)
    await append(store.change, 0)
    mirror = mirror_of(store)
    mirror.take()
    mirror.push()
    await append(store, 2)
    mirror.push()
    assert mirror.missing == []
    mirror.release()
    other = on_another_machine(store, tmp_path / "other/r1")
    kept = {file.relative_to(other.here).as_posix() for file in other.here.rglob("*") if file.is_file()}
    assert kept == {
        *("plan.json", "journal.jsonl", "location", "holder.json", "snapshot/abc.tar.gz", "report/1.html"),
        *("change/plan.json", "change/journal.jsonl"),
    }
    assert other.read_plan() == store.read_plan()
    assert other.read_journal() == store.read_journal()
    assert other.journal.read_bytes() == store.journal.read_bytes()
    assert other.change.read_journal() == store.change.read_journal()
    next_one = mirror_of(other)
    next_one.take()
    await append(other, 3)
    next_one.push()
    pieces = [name for name in storage_at(url).sizes() if name.startswith("journal/")]
    assert len(pieces) == 3, "what is there is not copied again"
    next_one.release()
    with pytest.raises(RunTakenError, match="another process has continued the run since: name it by its URL"):
        mirror_of(store).take()
    fetch(url, store.here)
    assert len(store.read_trials()) == 4
    mirror_of(store).take()


async def test_only_whole_lines_of_the_journal_are_copied(store: RunStore, tmp_path: Path) -> None:
    await append(store, 0)
    whole = store.journal.read_bytes()
    store.journal.write_bytes(whole + b'{"trial"')
    mirror = mirror_of(store)
    mirror.push()
    assert mirror.missing == ["journal.jsonl"]
    with store.open_journal() as journal:
        journal.drop_torn_line()
    await append(store, 1)
    mirror.push()
    other = on_another_machine(store, tmp_path / "other/r1")
    assert other.journal.read_bytes() == store.journal.read_bytes()


async def test_a_run_that_an_earlier_version_has_kept_is_fetched(store: RunStore, url: str, tmp_path: Path) -> None:
    await append(store, 0, 1, 2)
    first, second, third = store.journal.read_bytes().splitlines(keepends=True)
    storage = storage_at(url)
    storage.write("plan.json", store.plan.read_bytes())
    storage.write("journal/main/179-ab.jsonl", third)
    storage.write("journal/main.170-a.178-b.1.jsonl", first)
    storage.write("journal/0123abcd.170-a.178-b.1.jsonl", second)
    other = on_another_machine(store, tmp_path / "other/r1")
    assert sorted(one.trial for one in other.read_trials()) == [0, 1, 2]


def test_of_two_processes_one_holds_a_run_and_the_other_is_told_who(store: RunStore, tmp_path: Path) -> None:
    mirror = mirror_of(store)
    mirror.take()
    mirror.push()
    other = on_another_machine(store, tmp_path / "other/r1")
    message = rf"is already running \(held by process \d+ on {socket.gethostname()}, since .* UTC, until .* UTC"
    with pytest.raises(RunTakenError, match=message):
        mirror_of(other).take()
    with pytest.raises(RunTakenError, match="already running"):
        other.begin()
    mirror.release()
    mirror_of(other).take()
    with pytest.raises(RunTakenError, match="is not held by this process any more: another one has taken it"):
        mirror.push()


def test_a_run_of_another_machine_is_free_once_it_is_not_renewed(store: RunStore, url: str, tmp_path: Path) -> None:
    storage = storage_at(url)
    storage.write("plan.json", store.plan.read_bytes())
    held_elsewhere(storage)
    other = on_another_machine(store, tmp_path / "other/r1")
    with pytest.raises(RunTakenError, match="held by process 7 on elsewhere"):
        mirror_of(other).take()
    held_elsewhere(storage, until=datetime.now(UTC) - timedelta(seconds=1))
    with pytest.raises(RunTakenError, match="has continued the run since"):
        mirror_of(other).take()
    mirror_of(on_another_machine(store, other.here)).take()
    storage.write("holder.json", b"{")
    with pytest.raises(StorageError, match="is damaged"):
        mirror_of(other).take()


def test_names_that_lead_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    url = f"memory://{tmp_path}/r1"
    storage_at(url).write("plan.json", b"{}")
    storage_at(url).write("a/../../../b", b"out")
    names = storage_at(url).sizes()
    if any(".." in name for name in names):
        with pytest.raises(StorageError, match="outside of the run's folder"):
            fetch(url, tmp_path / "other/r1")
    assert not (tmp_path / "b").exists()


def test_a_place_without_a_run_is_no_run(url: str) -> None:
    with pytest.raises(StorageError, match="is not the plan of a run"):
        RunStore.of(url).read_plan()


def test_to_read_a_file_takes_one_request(object_store: ObjectStore, caplog: pytest.LogCaptureFixture) -> None:
    storage = storage_at(f"{object_store.new_url()}/r1")
    storage.write("coordinator", b"first")
    caplog.clear()
    with caplog.at_level(logging.INFO, "werkzeug"):
        assert (storage.read("coordinator"), storage.read("nothing.json")) == (b"first", None)
    asked = [record.getMessage() for record in caplog.records if record.name == "werkzeug"]
    assert (len(asked), all("GET /" in one for one in asked)) == (2, True), asked


def test_a_bucket_that_is_not_there_is_not_made_and_one_that_does_not_answer_may_answer_later(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nowhere = RunStore.new("r1", "s3://passgate-no-such-bucket/runs")
    with pytest.raises(StorageError, match=r"cannot write s3://passgate-no-such-bucket.*creates no bucket"):
        nowhere.refuse_unwritable()
    assert "passgate-no-such-bucket" not in object_store.buckets
    runs = object_store.new_url()
    object_store.stop()
    try:
        with pytest.raises(UnreachableError, match="cannot read"):
            storage_at(runs).read("plan.json")
        RunStore.new("r1", runs).refuse_unwritable()
    finally:
        object_store.start()


@pytest.mark.parametrize(
    ("ask", "driver_request"),
    [
        (RunStore.refuse_unwritable, "pipe_file"),
        (RunStore.refuse_unwritable, "rm_file"),
        (RunStore.begin, "cat_file"),
        (RunStore.begin, "rm_file"),
        (RunStore.has_plan, "cat_file"),
        (partial(RunStore.write_coordinator, coordinator="c1"), "pipe_file"),
    ],
)
def test_a_store_that_never_answers_holds_up_no_run(
    ask: Callable[[RunStore], object], driver_request: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("passgate.tasks.history.storage.SECONDS_TO_ANSWER", 0.05)
    monkeypatch.setattr(MemoryFileSystem, driver_request, lambda *_, **__: threading.Event().wait())
    assert not ask(RunStore.new("r1", "memory://runs"))


def test_a_url_of_an_unknown_kind_is_named() -> None:
    with pytest.raises(UsageError, match="nowhere://bucket/run cannot be opened"):
        storage_at("nowhere://bucket/run")


def test_a_mirror_that_has_ended_does_not_take_the_run(store: RunStore, url: str) -> None:
    mirror = Mirror(store.here, url)
    mirror.end()
    with pytest.raises(StorageError, match="does not hold the run"):
        mirror.push()
    assert storage_at(url).read("holder.json") is None
    Mirror(store.here, url).push()


@pytest.mark.parametrize(("seconds", "alive"), [(60, True), (-1, False)])
def test_a_holder_on_another_machine_lives_until_it_expires(seconds: float, alive: bool) -> None:
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    assert new_holder(1).model_copy(update={"host": "elsewhere", "process": 7, "until": until}).is_alive is alive


@pytest.mark.parametrize("is_zombie", [False, True])
def test_one_whose_process_on_this_machine_has_ended_is_dead_at_once(is_zombie: bool) -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | (os.WNOWAIT if is_zombie else 0))
        left = new_holder(3600).model_copy(update={"host": socket.gethostname(), "process": child.pid})
        assert not left.is_alive
    assert new_holder(3600).is_alive
