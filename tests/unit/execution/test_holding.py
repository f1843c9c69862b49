"""Who coordinates a run: nobody else can until its reports are written, and nobody is kept from it afterwards."""

import asyncio
import threading
from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError
from passgate.tasks.execution.holding import holding
from passgate.tasks.history.lease import Lease, living_holder
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.history.storage import storage_at


async def test_nobody_carries_on_a_run_in_a_folder_before_its_reports_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = RunStore.of("r")
    run.plan.parent.mkdir(parents=True)
    for file in (run.plan, run.verdict):
        file.write_text("{}")
    async with holding(RunStore.of("r")):
        with pytest.raises(StorageError, match="the run r is going on in another process"):
            run.begin()
        with pytest.raises(StorageError, match="the run r is going on in another process"):
            async with holding(RunStore.of("r")):
                pytest.fail("two hold it")
        assert run.verdict.exists()
    run.begin()
    assert not run.verdict.exists()


async def test_who_is_cancelled_while_it_takes_a_lease_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_entering, may_enter, enter = threading.Event(), threading.Event(), Lease.__enter__

    def enter_late(lease: Lease) -> Lease:
        is_entering.set()
        may_enter.wait(60)
        return enter(lease)

    monkeypatch.setattr(Lease, "__enter__", enter_late)
    location = f"file://{tmp_path}/runs/r"

    async def hold() -> None:
        async with holding(RunStore(location)):
            pytest.fail("it was cancelled")

    waiting = asyncio.create_task(hold())
    await asyncio.to_thread(is_entering.wait, 60)
    waiting.cancel()
    await asyncio.sleep(0)
    may_enter.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert living_holder(storage_at(location), "lease") is None
