"""A batch of trials as a flow run: what a worker of a work pool runs, on any machine that reaches the run's URL."""

import logging
from contextlib import suppress
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from passgate.flows.concurrency_limit import shared_limit
from passgate.tasks.errors import PassgateError, StorageError, first_known
from passgate.tasks.execution.distributed.batch import run_batch
from passgate.tasks.execution.distributed.stored_batches import failed_with, read_batch, write_outcome
from passgate.tasks.grade import grade
from passgate.tasks.history.run_store import RunStore

_log = logging.getLogger("prefect.flow_runs")


@flow(name="passgate-batch", flow_run_name="{name}", persist_result=False)
def batch(store: str, digest: str, name: str) -> State[Any]:
    """Run the trials of a batch that the run at a URL does not hold yet.

    `digest` is that of the batch, which is kept with the run; `name` is shown. What the batch has come to is kept with
    the run too. `passgate run --work-pool` starts these flow runs; a run of it by hand repeats no finished trial.
    """
    place = RunStore(store)
    try:
        outcome = run_batch(store, read_batch(place, digest), grade, shared_limit)
    except Exception as error:
        known = first_known(error)
        if known is None:
            raise
        _log.error("%s", known)
        with suppress(StorageError):
            write_outcome(place, digest, failed_with(known))
        return Failed(message=_named(known))
    write_outcome(place, digest, outcome)
    return Completed(message=f"{len(outcome.trials)} trials")


def _named(error: PassgateError) -> str:
    return f"{type(error).__name__}: {error}"
