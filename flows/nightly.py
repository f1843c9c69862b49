"""The nightly run: all four suites, for the trend."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from passgate.flows.prefect_engine import evaluate_in_flow
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName

_REQUEST = RunRequest()


@flow(name="nightly", flow_run_name="nightly {request.agent}")
async def nightly(request: RunRequest = _REQUEST) -> State[Any]:
    """The nightly run: all four suites, for the trend.

    Its state is GatePassed, GateFailed, AwaitingSignOff, GateInconclusive, GateNotRun or GateCrashed."""
    return await evaluate_in_flow(GateName.NIGHTLY, request)
