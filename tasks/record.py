"""Record the finished trials of a run in the history."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

import pyarrow as pa

from passgate.tasks.history.columns import arrow_schema, trials_table
from passgate.tasks.history.dataset import History
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.trial import FinishedTrial

_AT_ONCE: Final = 500  # rows as Python objects take ten times the memory that they take in a table


def record(context: RunContext, finished: Iterable[FinishedTrial]) -> History:
    """Store a complete run, without trials of earlier runs, which are stored already. Raise `StorageError`."""
    history = History(context.history_location)
    own = (one for one in finished if not one.trial.reused_from)
    tables, transcripts = [arrow_schema().empty_table()], dict[str, str]()
    while some := list(islice(own, _AT_ONCE)):
        tables.append(trials_table((one.trial for one in some), context))
        transcripts |= {one.trial.transcript_digest: one.transcript.model_dump_json() for one in some}
    history.write_run(context.run_id, pa.concat_tables(tables), transcripts)
    return history
