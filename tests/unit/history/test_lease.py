"""Leases: one holder at a time, wherever the others are."""

import multiprocessing
import socket
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError
from passgate.tasks.history.lease import Lease, LeaseHeldError, LeaseHolder, living_holder, newest_number
from passgate.tasks.history.storage import LocalStorage, Storage
from passgate.tasks.history.url_storage import UrlStorage
from tests.object_store import ObjectStore, object_store
from tests.waiting import wait_until

__all__ = ["object_store"]


@pytest.fixture(params=["folder", "s3", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, object_store: ObjectStore) -> Storage:
    if request.param == "folder":
        return LocalStorage(tmp_path)
    return UrlStorage.at(object_store.new_url() if request.param == "s3" else f"memory:/{tmp_path}")


def held_by(storage: Storage, **changes: object) -> None:
    """Write a lease as another process has left it."""
    now = datetime.now(UTC)
    plain = {"host": "elsewhere", "system": "s", "process": 7, "token": "t", "since": now, "until": now}
    storage.write("lease/000001.json", LeaseHolder.model_validate(plain | changes).model_dump_json().encode())


def test_of_two_one_holds_it_and_the_other_is_told_who(storage: Storage) -> None:
    with Lease(storage, "lease", "the run"):
        message = rf"the run is held by process \d+ on {socket.gethostname()}, since .* UTC, until .* UTC"
        with pytest.raises(LeaseHeldError, match=message), Lease(storage, "lease", "the run"):
            pytest.fail("two hold it")
        assert living_holder(storage, "lease") is not None
    assert living_holder(storage, "lease") is None
    with Lease(storage, "lease", "the run") as lease:
        lease.check()


def test_one_on_another_machine_is_waited_for_until_it_expires(storage: Storage) -> None:
    held_by(storage, until=datetime.now(UTC) + timedelta(hours=1))
    with pytest.raises(LeaseHeldError, match="process 7 on elsewhere"), Lease(storage, "lease", "the run"):
        pytest.fail("it is held")
    held_by(storage, until=datetime.now(UTC) - timedelta(seconds=1))
    with Lease(storage, "lease", "the run"):
        assert newest_number(storage, "lease")[0] == 2


def test_one_whose_process_on_this_machine_has_ended_is_free_at_once(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    child = multiprocessing.get_context("spawn").Process(target=_hold_and_die, args=(str(tmp_path),))
    child.start()
    child.join()
    assert newest_number(storage, "lease")[0] == 1
    with Lease(storage, "lease", "the run") as lease:
        lease.check()


def _hold_and_die(folder: str) -> None:
    import os

    Lease(LocalStorage(Path(folder)), "lease", "the run", seconds=3600).__enter__()
    os._exit(9)


def test_it_is_renewed_while_it_is_held(storage: Storage) -> None:
    with Lease(storage, "lease", "the run", seconds=0.8):
        first = living_holder(storage, "lease")
        assert first is not None

        def is_renewed() -> bool:
            now = living_holder(storage, "lease")
            return now is not None and now.until > first.until

        wait_until(is_renewed)


def test_whoever_has_lost_it_is_told_and_cannot_go_on(storage: Storage) -> None:
    told = threading.Event()
    with Lease(storage, "lease", "the run", seconds=0.4, lost=told.set) as lease:
        name = newest_number(storage, "lease")[0]
        storage.write(f"lease/{name + 1:06}.json", storage.read(f"lease/{name:06}.json") or b"")
        assert told.wait(60)
        with pytest.raises(StorageError, match="the run is not held by this process any more"):
            lease.check()
        with pytest.raises(StorageError, match="another one has taken it"):
            lease.refuse_lost()
    assert newest_number(storage, "lease")[0] == name + 1, "the lease of the other one stays as it is"


def test_a_lease_that_cannot_be_read_is_not_taken(storage: Storage) -> None:
    storage.write("lease/000001.json", b"{")
    with pytest.raises(StorageError, match="cannot be read"), Lease(storage, "lease", "the run"):
        pytest.fail("it may be held")
