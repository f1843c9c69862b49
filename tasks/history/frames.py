"""The history as DataFrames whose columns have the types of its schema."""

from typing import Literal

import pandas as pd
import pyarrow as pa

from passgate.tasks.history.columns import summary_schema
from passgate.tasks.history.dataset import Days, History

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
    """The rows of a history at a folder or URL, of runs that began on these UTC days (`2026-01-31`) and of a suite.

    `summaries` has a row per run and eval task, `trials` a row per trial. Integers stay integers where some are not
    known: what is not known is `pandas.NA`. A history that does not exist yet has no rows. Raises `StorageError`.
    """
    history, days = History(location), Days(since, until)
    if what == "trials":
        table = history.trial_table(days, suite)
    else:
        table = history.summaries(summary_schema().names, days, suite)
    frame: pd.DataFrame = table.to_pandas(types_mapper=_TYPES.get)
    return frame
