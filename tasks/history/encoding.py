"""Texts of a table as numbers into the distinct texts: a history of years repeats few of them millions of times."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ENCODED_TEXT: Final = pa.dictionary(pa.int32(), pa.string())


def encoded_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with its texts encoded."""
    fields = (field.with_type(ENCODED_TEXT) if field.type == pa.string() else field for field in schema)
    return pa.schema(fields, schema.metadata)


def encoded(table: pa.Table) -> pa.Table:
    """The table with its texts encoded, each column with one list of texts."""
    columns = [column.dictionary_encode() if column.type == pa.string() else column for column in table.itercolumns()]
    return pa.table(columns, table.schema.names).unify_dictionaries()


def decoded(table: pa.Table) -> pa.Table:
    """The table with its texts as texts."""
    fields = (field.with_type(pa.string()) if _is_encoded(field.type) else field for field in table.schema)
    return table.cast(pa.schema(fields, table.schema.metadata))


class Codes(NamedTuple):
    """A column of texts: of each row the place of its text among the sorted ones; -1 where it has none."""

    names: Sequence[str]
    numbers: npt.NDArray[np.int64]

    def at(self, row: int) -> str:
        """The text of a row; empty where it has none."""
        number = int(self.numbers[row])
        return "" if number < 0 else self.names[number]

    def without_unused(self) -> "Codes":
        """The same with the texts alone that a row has."""
        used, numbers = np.unique(self.numbers, return_inverse=True)
        kept = [self.names[number] for number in used if number >= 0]
        return Codes(kept, numbers - (1 if len(used) and used[0] < 0 else 0))


def codes_of(column: pa.ChunkedArray) -> Codes:
    """A column of `encoded`."""
    if not column.num_chunks:
        return Codes([], np.empty(0, np.int64))
    names = column.chunk(0).dictionary.to_pylist()
    order = sorted(range(len(names)), key=lambda number: str(names[number]))
    places = np.empty(len(names) + 1, np.int64)
    places[order], places[-1] = np.arange(len(names)), -1
    indices = [chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return Codes([str(names[number]) for number in order], places[np.concatenate(indices)])


def _is_encoded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))
