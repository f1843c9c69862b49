"""Tables as files."""

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.builders import STARTED, a_grade, a_plan, a_task, a_trial

from passgate.tasks.history.columns import arrow_schema, row, summary_schema, table_of
from passgate.tasks.history.summaries import summarised
from passgate.tasks.model.export import TableFormat
from passgate.tasks.reports.table_files import write_rows

PLAN = a_plan(a_task())
TABLES = [table_of([row(a_trial(a_task(), number, grades=(a_grade(),)), PLAN)]) for number in range(3)]


def written(tables: list[pa.Table], chosen: TableFormat, schema: pa.Schema | None = None) -> bytes:
    sink = io.BytesIO()
    assert write_rows(tables, schema or arrow_schema(), chosen, sink) == sum(map(len, tables))
    return sink.getvalue()


def test_parquet_keeps_the_rows_their_types_and_their_meanings() -> None:
    table = pq.read_table(io.BytesIO(written(TABLES, TableFormat.PARQUET)))
    assert table.equals(pa.concat_tables(TABLES))
    assert [field.metadata[b"description"] for field in table.schema] == [
        field.metadata[b"description"] for field in arrow_schema()
    ]


def test_every_line_of_json_is_a_row_with_every_column() -> None:
    lines = [json.loads(line) for line in written(TABLES, TableFormat.JSONL).splitlines()]
    assert [line["trial"] for line in lines] == [0, 1, 2]
    assert list(lines[0]) == arrow_schema().names
    assert datetime.fromisoformat(lines[0]["started_at"]) == STARTED
    assert lines[0]["grades"][0]["name"] == "answer"
    assert lines[0]["tokens_in"] is None


def test_csv_has_a_header_and_lists_as_json() -> None:
    header, *rows = csv.reader(io.StringIO(written(TABLES, TableFormat.CSV).decode()))
    assert header == arrow_schema().names
    first = dict(zip(header, rows[0], strict=True))
    assert len(rows) == 3
    assert json.loads(first["grades"])[0]["name"] == "answer"
    assert (first["confirming"], first["tokens_in"]) == ("false", "")
    assert datetime.fromisoformat(first["started_at"]).astimezone(UTC) == STARTED


def test_a_table_without_rows_is_a_file_all_the_same() -> None:
    assert pq.read_table(io.BytesIO(written([], TableFormat.PARQUET))).schema.equals(arrow_schema())
    assert written([], TableFormat.JSONL) == b""
    assert written([], TableFormat.CSV).decode().strip().split(",") == arrow_schema().names


@pytest.mark.parametrize("text", ["=cmd()", "+1", "-1", "@sum", "\tx"])
def test_no_spreadsheet_takes_a_text_for_a_formula(text: str) -> None:
    table = table_of([row(a_trial(a_task()), PLAN) | {"reason": text}])
    header, first = csv.reader(io.StringIO(written([table], TableFormat.CSV).decode()))
    assert first[header.index("reason")] == f"'{text}"
    assert json.loads(written([table], TableFormat.JSONL))["reason"] == text


@pytest.mark.parametrize("chosen", [TableFormat.CSV, TableFormat.JSONL])
def test_summaries_read_as_the_golden_file(chosen: TableFormat, matches_golden: Callable[[str, str], None]) -> None:
    names = ["run_id", "suite", "task_id", "outcomes", "passed", "value", "started_at", "wall_times", "cost"]
    table = summarised(pa.concat_tables(TABLES)).select(names)
    text = written([table], chosen, pa.schema([summary_schema().field(name) for name in names])).decode()
    matches_golden(text, f"history_export.{chosen}")
