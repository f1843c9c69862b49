"""Leases: one holder at a time, wherever the others are."""

import os
import socket
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError
from passgate.tasks.history.lease import Lease, LeaseHeldError, living_holder, new_holder, newest_number
from passgate.tasks.history.storage import LocalStorage, Storage
from passgate.tasks.history.url_storage import UrlStorage
from tests.object_store import ObjectStore
from tests.waiting import wait_until


@pytest.fixture(params=["folder", "s3", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, object_store: ObjectStore) -> Storage:
    if request.param == "folder":
        return LocalStorage(tmp_path)
    return UrlStorage.at(object_store.new_url() if request.param == "s3" else f"memory:/{tmp_path}")


def held_by(storage: Storage, **changes: object) -> None:
    """Write a lease as another process has left it."""
    left = new_holder(3600).model_copy(update={"host": "elsewhere", "process": 7} | changes)
    storage.write("lease/000001.json", left.model_dump_json().encode())


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
    held_by(storage)
    with pytest.raises(LeaseHeldError, match="process 7 on elsewhere"), Lease(storage, "lease", "the run"):
        pytest.fail("it is held")
    held_by(storage, until=datetime.now(UTC) - timedelta(seconds=1))
    with Lease(storage, "lease", "the run"):
        assert newest_number(storage, "lease")[0] == 2
    storage.write("lease/000003.json", b"{")
    with pytest.raises(StorageError, match="cannot be read"), Lease(storage, "lease", "the run"):
        pytest.fail("it may be held")


@pytest.mark.parametrize("is_zombie", [False, True])
def test_one_whose_process_on_this_machine_has_ended_is_free_at_once(tmp_path: Path, is_zombie: bool) -> None:
    storage = LocalStorage(tmp_path)
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | (os.WNOWAIT if is_zombie else 0))
        held_by(storage, host=socket.gethostname(), process=child.pid)
        with Lease(storage, "lease", "the run") as lease:
            lease.check()


@pytest.mark.usefixtures("renewed_at_once")
def test_it_is_renewed_while_it_is_held(storage: Storage) -> None:
    with Lease(storage, "lease", "the run"):
        first = living_holder(storage, "lease")
        assert first is not None
        wait_until(lambda: (now := living_holder(storage, "lease")) is not None and now.until > first.until)


@pytest.mark.usefixtures("renewed_at_once")
def test_whoever_has_lost_it_is_told_and_cannot_go_on(storage: Storage) -> None:
    told: list[bool] = []
    with Lease(storage, "lease", "the run", lost=lambda: told.append(True)) as lease:
        number = newest_number(storage, "lease")[0]
        storage.write(f"lease/{number + 1:06}.json", storage.read(f"lease/{number:06}.json") or b"")
        wait_until(lambda: told)
        with pytest.raises(StorageError, match="the run is not held by this process any more"):
            lease.check()
        with pytest.raises(StorageError, match="another one has taken it"):
            lease.refuse_lost()
    assert newest_number(storage, "lease")[0] == number + 1, "the lease of the other one stays as it is"
