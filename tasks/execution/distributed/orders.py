"""What a coordinator tells the processes that run its batches, and what these give back, as files of the run."""

from typing import Final, TypeVar

from pydantic import ValidationError

from passgate.tasks.errors import StorageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import BatchOrders, Released

Model = TypeVar("Model", BatchOrders, Released)

_ORDERS: Final = "batches.json"
_RELEASED: Final = "released.{part}.json"


def write_orders(store: RunStore, orders: BatchOrders) -> None:
    """Tell all processes that run batches of the run. Raises `StorageError`."""
    store.write_file(_ORDERS, orders.model_dump_json().encode())


def read_orders(store: RunStore) -> BatchOrders | None:
    """What a coordinator has told last; `None` where none has. Raises `StorageError`."""
    return _read(store, _ORDERS, BatchOrders)


def write_released(store: RunStore, part: str, released: Released) -> None:
    """Say what a batch gives back, by the part of the journal that it writes. Raises `StorageError`."""
    store.write_file(_RELEASED.format(part=part), released.model_dump_json().encode())


def read_released(store: RunStore, part: str) -> Released | None:
    """What a batch has given back; `None` where it has kept all. Raises `StorageError`."""
    return _read(store, _RELEASED.format(part=part), Released)


def _read(store: RunStore, name: str, kind: type[Model]) -> Model | None:
    content = store.read_file(name)
    try:
        return None if content is None else kind.model_validate_json(content)
    except ValidationError as error:
        raise StorageError(f"{store.location}/{name} is damaged: {error}") from error
