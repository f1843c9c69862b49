"""The history as DataFrames whose columns have the types of its schema."""

from typing import Literal

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from passgate.tasks.history.dataset import History, RunSelection

_TYPES = {
    pa.int64(): pd.Int64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.string(): pd.StringDtype(),
}


def load(
    location: str = ".passgate/history",
    what: Literal["summaries", "trials"] = "summaries",
    *,
    since: str = "",
    until: str = "",
    suite: str | None = None,
) -> pd.DataFrame:
    """Return the rows of a history at a folder or URL, of runs that began on these UTC days (`2026-01-31`).

    `summaries` has a row per run and eval task, `trials` a row per trial. Integers stay integers where some are not
    known: what is not known is `pandas.NA`. A history that does not exist yet has no rows. Raises `StorageError`.
    """
    history, runs = History(location), RunSelection(since, until, newest=None)
    if what == "trials":
        table = history.trials(where=None if suite is None else ds.field("suite") == suite, runs=runs)
    else:
        table = history.summaries(runs, suite)
    frame: pd.DataFrame = table.to_pandas(types_mapper=_TYPES.get)
    return frame
