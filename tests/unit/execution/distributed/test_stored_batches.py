"""Batches and their outcomes in the run store, on their way to other machines and back."""

from pathlib import Path

import pytest

from passgate.tasks.errors import EngineError, MeasurementError, PassgateError, StorageError, UsageError
from passgate.tasks.execution.distributed.stored_batches import (
    failed_with,
    has_outcome,
    read_batch,
    read_outcome,
    write_batch,
    write_outcome,
)
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Batch, BatchOutcome

BATCH = Batch(name="a", trials=(("a", 0),), plan_digest="d")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    monkeypatch.chdir(tmp_path)
    return RunStore(f"file://{tmp_path}/r1")


def test_a_batch_is_found_by_its_digest_and_its_outcome_too(store: RunStore, tmp_path: Path) -> None:
    digest = write_batch(store, BATCH)
    assert (read_batch(store, digest), read_outcome(store, digest), has_outcome(store, digest)) == (BATCH, None, False)
    outcome = BatchOutcome(name="a", spent=0.5)
    write_outcome(store, digest, outcome)
    assert (read_outcome(store, digest), has_outcome(store, digest)) == (outcome, True)
    (tmp_path / "r1/batches" / f"{digest}.json").write_text(BATCH.model_dump_json() + " ")
    with pytest.raises(StorageError, match="is not the batch that was handed out: nothing was run"):
        read_batch(store, digest)


@pytest.mark.parametrize("kind", [UsageError, StorageError, MeasurementError, EngineError])
def test_what_a_batch_raises_is_raised_where_it_was_handed_out(store: RunStore, kind: type[PassgateError]) -> None:
    write_outcome(store, "d", failed_with(kind("it cannot go on")))
    with pytest.raises(kind, match="it cannot go on") as raised:
        read_outcome(store, "d")
    assert type(raised.value) is kind
