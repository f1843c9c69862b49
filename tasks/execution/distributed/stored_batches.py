"""Batches that go to other machines through the run store: the batch there, its outcome back."""

import hashlib
from typing import Final, Literal

from pydantic import ValidationError

from passgate.tasks.errors import EngineError, MeasurementError, PassgateError, StorageError, UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.run import Batch, BatchOutcome

_FOLDER: Final = "batches"
_ERRORS: Final[dict[str, type[PassgateError]]] = {
    "usage": UsageError,
    "storage": StorageError,
    "measurement": MeasurementError,
    "engine": EngineError,
}


class BatchFailure(Frozen):
    """Why a batch could not be run to its end."""

    kind: Literal["usage", "storage", "measurement", "engine"]
    message: str


def write_batch(store: RunStore, batch: Batch) -> str:
    """Keep a batch with its run; gives its digest, by which another machine finds it. Raises `StorageError`."""
    content = batch.model_dump_json().encode()
    digest = hashlib.sha256(content).hexdigest()
    store.write_file(_name(digest), content)
    return digest


def read_batch(store: RunStore, digest: str) -> Batch:
    """A batch by its digest. Raises `StorageError`, also for one that was changed."""
    content = store.read_file(_name(digest)) or b""
    if hashlib.sha256(content).hexdigest() != digest:
        raise StorageError(f"{store.location}/{_name(digest)} is not the batch that was handed out: nothing was run")
    return Batch.model_validate_json(content)


def write_outcome(store: RunStore, digest: str, outcome: BatchOutcome | BatchFailure) -> None:
    """Keep what a batch has come to. Raises `StorageError`."""
    store.write_file(_name_of_outcome(digest), outcome.model_dump_json().encode())


def read_outcome(store: RunStore, digest: str) -> BatchOutcome | None:
    """What a batch has come to; `None` where it has not ended. Raises what the batch has raised, and `StorageError`."""
    content = store.read_file(_name_of_outcome(digest))
    if content is None:
        return None
    try:
        failure = BatchFailure.model_validate_json(content)
    except ValidationError:
        try:
            return BatchOutcome.model_validate_json(content)
        except ValidationError as error:
            raise StorageError(f"{store.location}/{_name_of_outcome(digest)} is no outcome of a batch") from error
    raise _ERRORS[failure.kind](failure.message)


def has_outcome(store: RunStore, digest: str) -> bool:
    """Whether a batch has ended. Raises `StorageError`."""
    return store.has_file(_name_of_outcome(digest))


def failed_with(error: PassgateError) -> BatchFailure:
    """What is told of an error of a batch."""
    kinds: dict[str, Literal["usage", "storage", "measurement", "engine"]] = {
        "UsageError": "usage",
        "StorageError": "storage",
        "MeasurementError": "measurement",
    }
    return BatchFailure(kind=kinds.get(type(error).__name__, "engine"), message=str(error))


def _name(digest: str) -> str:
    return f"{_FOLDER}/{digest}.json"


def _name_of_outcome(digest: str) -> str:
    return f"{_FOLDER}/{digest}.outcome.json"
