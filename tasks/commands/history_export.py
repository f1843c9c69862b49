"""Export: the rows of a history that fit, a portion at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.history.columns import arrow_schema, summary_schema
from passgate.tasks.history.dataset import ALL_DAYS, Days, History
from passgate.tasks.model.export import ExportedRows
from passgate.tasks.model.task import GateName, Suite


@dataclass(frozen=True)
class ExportRequest:
    """Which rows are exported; `None` means all."""

    rows: ExportedRows
    days: Days = ALL_DAYS
    gate: GateName | None = None
    suite: Suite | None = None
    agent: str | None = None


def exported_schema(request: ExportRequest) -> pa.Schema:
    """The columns, with their meanings as metadata."""
    return arrow_schema() if request.rows is ExportedRows.TRIALS else summary_schema()


def exported(history: History, request: ExportRequest) -> Iterator[pa.Table]:
    """The rows with every column, the oldest days first. Raises `StorageError`."""
    schema, suite = exported_schema(request), None if request.suite is None else str(request.suite)
    portions = history.trial_portions if request.rows is ExportedRows.TRIALS else history.summary_portions
    for table in portions(request.days, suite):
        kept = table
        for column, value in (("gate", request.gate), ("agent", request.agent)):
            if value is not None:
                kept = kept.filter(pc.equal(kept[column], str(value)))
        yield kept.select(schema.names).cast(schema)
