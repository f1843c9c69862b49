"""Tables as Parquet, CSV or JSON Lines, a portion of rows at a time."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from passgate.tasks.model.export import TableFormat

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_ROWS: Final = 5000  # As Python objects rows take ten times the memory that they take in a table


class Sink(Protocol):
    """What takes bytes, one after the other: a file, or a pipe, which knows no positions."""

    def write(self, content: bytes, /) -> object: ...


def write_rows(tables: Iterable[pa.Table], schema: pa.Schema, chosen: TableFormat, sink: Sink) -> int:
    """Write tables of a schema, and give the number of their rows.

    CSV has lists as JSON, and an apostrophe before texts that spreadsheets take for formulas. Times are ISO 8601.
    """
    writers: dict[TableFormat, Callable[[Iterable[pa.Table], pa.Schema, Sink], int]] = {
        TableFormat.PARQUET: _write_parquet,
        TableFormat.CSV: _write_csv,
        TableFormat.JSONL: _write_jsonl,
    }
    return writers[chosen](tables, schema, sink)


class _Counted(io.RawIOBase):
    """A sink that knows how far it is, which Parquet's writer asks for."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink, self._written = sink, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, content: Any, /) -> int:
        data = bytes(content)
        self._sink.write(data)
        self._written += len(data)
        return len(data)


def _write_parquet(tables: Iterable[pa.Table], schema: pa.Schema, sink: Sink) -> int:
    rows = 0
    with pq.ParquetWriter(_Counted(sink), schema, compression="zstd") as writer:
        for table in tables:
            if len(table):
                writer.write_table(table)
            rows += len(table)
    return rows


def _write_csv(tables: Iterable[pa.Table], schema: pa.Schema, sink: Sink) -> int:
    rows = 0
    sink.write(_csv_text([schema.names]))
    for batch in _batches(tables):
        columns = [[_csv_cell(value) for value in column.to_pylist()] for column in batch.columns]
        sink.write(_csv_text(zip(*columns, strict=True)))
        rows += len(batch)
    return rows


def _csv_text(rows: Iterable[Iterable[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def _csv_cell(value: Any) -> object:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if isinstance(value, (list, dict)):
        return _json(value)
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, datetime) else value


def _write_jsonl(tables: Iterable[pa.Table], _: pa.Schema, sink: Sink) -> int:
    rows = 0
    for batch in _batches(tables):
        sink.write("".join(f"{_json(row)}\n" for row in batch.to_pylist()).encode("utf-8", "replace"))
        rows += len(batch)
    return rows


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=datetime.isoformat)


def _batches(tables: Iterable[pa.Table]) -> Iterable[pa.RecordBatch]:
    for table in tables:
        yield from table.to_batches(max_chunksize=_ROWS)
