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


def test_a_batch_is_found_by_its_digest_and_its_outcome_too(store: RunStore) -> None:
    digest = write_batch(store, BATCH)
    assert read_batch(store, digest) == BATCH
    assert read_outcome(store, digest) is None
    assert not has_outcome(store, digest)
    write_outcome(store, digest, BatchOutcome(name="a", spent=0.5))
    assert has_outcome(store, digest)
    assert read_outcome(store, digest) == BatchOutcome(name="a", spent=0.5)


def test_a_batch_that_was_changed_is_none(store: RunStore, tmp_path: Path) -> None:
    digest = write_batch(store, BATCH)
    (tmp_path / "r1/batches" / f"{digest}.json").write_text(BATCH.model_dump_json() + " ")
    with pytest.raises(StorageError, match="is not the batch that was handed out: nothing was run"):
        read_batch(store, digest)


@pytest.mark.parametrize(
    ("error", "as_read"),
    [
        (UsageError("no agent"), UsageError),
        (StorageError("no store"), StorageError),
        (MeasurementError("no provider"), MeasurementError),
        (EngineError("no coordinator"), EngineError),
    ],
)
def test_what_a_batch_raises_is_raised_where_it_was_handed_out(
    store: RunStore, error: PassgateError, as_read: type[PassgateError]
) -> None:
    write_outcome(store, "d", failed_with(error))
    with pytest.raises(as_read, match=str(error)):
        read_outcome(store, "d")
