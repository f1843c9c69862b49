"""Who coordinates a run: nobody else can until its reports are written, and nobody is kept from it afterwards."""

import asyncio
from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError
from passgate.tasks.execution import holding as holding_module
from passgate.tasks.execution.holding import holding
from passgate.tasks.history.mirror import new_holder
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.history.storage import storage_at
from passgate.tasks.model.quotes import Masker
from tests.builders import a_plan
from tests.object_store import ObjectStore, object_store
from tests.waiting import until

__all__ = ["object_store"]


async def test_nobody_carries_on_a_run_in_a_folder_before_its_reports_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("passgate.tasks.files.atomic_write.SECONDS_TO_WAIT", 0.1)
    run = RunStore.of("r")
    run.plan.parent.mkdir(parents=True)
    for file in (run.plan, run.verdict):
        file.write_text("{}")
    async with holding(RunStore.of("r")):
        with pytest.raises(StorageError, match="the run r is already running in another process"):
            run.begin()
        with pytest.raises(StorageError, match="the run r is already running in another process"):
            async with holding(RunStore.of("r")):
                pytest.fail("two hold it")
        assert run.verdict.exists()
    run.begin()
    assert not run.verdict.exists()


@pytest.fixture
def mirrored(tmp_path: Path, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """A run with a mirror at an S3 server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(holding_module, "MIRROR_SECONDS", 0.05)
    store = RunStore.new("r", object_store.new_url())
    store.settle_here()
    store.write_plan(a_plan(run_id="r"), Masker([]))
    return store


async def test_what_changes_goes_to_the_url_meanwhile_and_at_the_end(
    mirrored: RunStore, object_store: ObjectStore
) -> None:
    async with holding(mirrored):
        assert {"plan.json", "holder.json"} <= {*object_store.keys(mirrored.location)}
        mirrored.write_file("meanwhile", b"1")
        await until(lambda: "meanwhile" in object_store.keys(mirrored.location))
        holding_module.MIRROR_SECONDS = 999.0
        mirrored.write_file("at_the_end", b"2")
    assert "at_the_end" in object_store.keys(mirrored.location)
    async with holding(mirrored):
        pass


async def test_who_has_lost_a_run_is_stopped(mirrored: RunStore) -> None:
    taken = new_holder(60).model_dump_json().encode()

    async def lose_it() -> None:
        async with holding(mirrored):
            storage_at(mirrored.location).write("holder.json", taken)
            await asyncio.Future()

    with pytest.raises(StorageError, match="another one has taken it"):
        await lose_it()
    with pytest.raises(StorageError, match="already running"):
        async with holding(mirrored):
            pytest.fail("two hold it")


async def test_a_url_that_does_not_answer_stops_nothing_and_what_is_not_there_is_said(
    mirrored: RunStore, object_store: ObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    object_store.stop()
    try:
        async with holding(mirrored) as check:
            mirrored.write_file("verdict.json", b"{}")
            await check()
    finally:
        object_store.start()
    said = capsys.readouterr().err
    assert "The trials run; their files go to s3://" in said
    assert "Not copied to s3://" in said
    assert "verdict.json, plan.json; they are in " in said
    async with holding(mirrored):
        pass
    assert {"plan.json", "verdict.json"} <= {*object_store.keys(mirrored.location)}
