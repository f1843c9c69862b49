"""The gate of a merge: golden, adversarial and failure_replays."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from passgate.flows.prefect_engine import evaluate_in_flow
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName

_REQUEST = RunRequest()


@flow(name="ci_merge", flow_run_name="ci_merge {request.agent}")
async def ci_merge(request: RunRequest = _REQUEST) -> State[Any]:
    """The gate of a merge: golden, adversarial and failure_replays.

    Its state is GatePassed, GateFailed, AwaitingSignOff, GateInconclusive, GateNotRun or GateCrashed."""
    return await evaluate_in_flow(GateName.CI_MERGE, request)
