"""A run at a URL: the same store, whatever the place is."""

import asyncio
import logging
import threading
from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.history.storage import storage_at
from passgate.tasks.history.url_storage import UrlStorage
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.masker import Masker
from passgate.tasks.model.trial import TrialStatus
from tests.builders import SHIPPED, a_finished, a_plan, a_task, trials_of, verdict_on
from tests.object_store import ObjectStore
from tests.waiting import LIMIT

NO_SECRETS = Masker([])
TASK = a_task()


@pytest.fixture(params=["folder", "file", "memory", "s3"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> RunStore:
    """An empty store in a folder, at a URL of this machine's files, and at those of object stores."""
    monkeypatch.chdir(tmp_path)
    locations = {"folder": f"{tmp_path}/r1", "file": f"file://{tmp_path}/r1", "memory": f"memory://{tmp_path}/r1"}
    return RunStore(locations.get(request.param, f"{object_store.new_url()}/r1"))


@pytest.fixture
def in_s3(object_store: ObjectStore) -> RunStore:
    return RunStore(f"{object_store.new_url()}/r1")


def test_a_plan_and_a_verdict_are_read_back(store: RunStore) -> None:
    with pytest.raises(StorageError, match="is not the plan of a run"):
        store.read_plan()
    store.remove()
    plan = a_plan(TASK)
    store.write_plan(plan, NO_SECRETS)
    assert store.read_plan() == plan
    assert (store.read_verdict(), store.has_verdict()) == (None, False)
    verdict = verdict_on(plan, SHIPPED, trials_of(TASK, "ppp"), Baseline(branch="main"))
    store.write_reports(verdict, {"summary.md": "# passed"})
    assert (store.read_verdict(), store.has_verdict()) == (verdict, True)
    store.begin()
    assert not store.has_verdict()


async def test_a_trial_that_was_measured_counts_whatever_comes_later(store: RunStore) -> None:
    for status in (TrialStatus.ERROR, TrialStatus.PASSED, TrialStatus.ERROR):
        with store.open_journal() as journal:
            await journal.append(a_finished(TASK, 0, status=status))
    assert [one.trial.status for one in store.read_journal()] == [TrialStatus.PASSED]


async def test_the_journal_is_followed_while_it_grows(store: RunStore) -> None:
    seen: dict[str, int] = {}
    assert list(store.new_lines(seen)) == store.read_journal() == []
    with store.open_journal() as journal:
        for trial in range(2):
            await journal.append(a_finished(TASK, trial))
            assert len(list(store.new_lines(seen))) == 1
    assert list(store.new_lines(seen)) == []


async def test_what_a_killed_writer_has_left_is_read_and_followed_once(store: RunStore) -> None:
    seen: dict[str, int] = {}
    journal = store.open_journal()
    opened = journal.__enter__()
    await opened.append(a_finished(TASK, 0))
    assert len(list(store.new_lines(seen))) == 1
    journal.__exit__(KeyboardInterrupt, None, None)
    with store.open_journal() as again:
        await again.append(a_finished(TASK, 1))
    assert [one.trial.trial for one in store.read_journal()] == [0, 1]
    assert 1 <= len(list(store.new_lines(seen))) <= 2
    assert list(store.new_lines(seen)) == []


async def test_to_look_for_new_trials_takes_a_few_requests_however_many_there_are(tmp_path: Path) -> None:
    store = RunStore(f"memory:/{tmp_path}/r1")
    stored, seen = storage_at(store.location), dict[str, int]()
    with store.open_journal() as journal:
        for trial in range(230):
            await journal.append(a_finished(TASK, trial))
        assert len(stored.listing("journal").files) == 2, "every hundred are one object"
        assert len(stored.listing("journal/main").files) == 30
        assert len(set(store.new_lines(seen))) == 230
    assert list(store.new_lines(seen)) == [], "what was sealed was seen before"
    assert [one.trial for one in store.read_trials()] == list(range(230))


async def test_trials_that_wait_for_a_store_in_trouble_take_no_thread_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, write = threading.Event(), UrlStorage.write

    def write_late(storage: UrlStorage, name: str, content: bytes) -> None:
        answers.wait()
        write(storage, name, content)

    monkeypatch.setattr(UrlStorage, "write", write_late)
    store = RunStore(f"memory:/{tmp_path}/r1")
    with store.open_journal() as journal:
        appending = [asyncio.create_task(journal.append(a_finished(TASK, trial))) for trial in range(60)]
        await asyncio.sleep(0)
        try:
            # Where they took these threads, nothing would end the waiting.
            await asyncio.wait_for(asyncio.to_thread(answers.set), LIMIT)
        finally:
            answers.set()
        await asyncio.gather(*appending)
    assert len(store.read_trials()) == 60


def test_to_read_a_file_takes_one_request(in_s3: RunStore, caplog: pytest.LogCaptureFixture) -> None:
    in_s3.write_file("batches.json", b"orders")
    caplog.clear()
    with caplog.at_level(logging.INFO, "werkzeug"):
        assert (in_s3.read_file("batches.json"), in_s3.read_file("nothing.json")) == (b"orders", None)
    asked = [record.getMessage() for record in caplog.records if record.name == "werkzeug"]
    assert (len(asked), all("GET /" in one for one in asked)) == (2, True), asked


def test_a_bucket_that_is_not_there_is_not_made(object_store: ObjectStore) -> None:
    store = RunStore("s3://passgate-no-such-bucket/runs/r1")
    with pytest.raises(StorageError, match="cannot write s3://passgate-no-such-bucket"):
        store.write_plan(a_plan(TASK), NO_SECRETS)
    assert "passgate-no-such-bucket" not in object_store.buckets


def test_outages_are_ridden_out(in_s3: RunStore, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    in_s3.write_plan(a_plan(TASK), NO_SECRETS)
    object_store.stop()
    with pytest.raises(StorageError, match="cannot read"):
        UrlStorage.at(in_s3.location, retry_seconds=0.0).read("plan.json")
    pauses = [object_store.start]
    monkeypatch.setattr("passgate.tasks.history.url_storage.time.sleep", lambda _: pauses and pauses.pop()())
    assert in_s3.read_plan() == a_plan(TASK)
    assert pauses == []


def test_a_url_of_an_unknown_kind_is_named_and_one_elsewhere_is_no_folder() -> None:
    with pytest.raises(UsageError, match="nowhere://bucket/run cannot be opened"):
        RunStore("nowhere://bucket/run")
    with pytest.raises(UsageError, match="is no folder of this machine"):
        _ = RunStore("memory://runs/r1").journal
