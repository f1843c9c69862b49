"""What an export of the history is made of."""

from enum import StrEnum


class ExportedRows(StrEnum):
    """What a row is: a trial, or an eval task of a run."""

    TRIALS = "trials"
    SUMMARIES = "summaries"


class TableFormat(StrEnum):
    """The formats of a table in a file."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"
