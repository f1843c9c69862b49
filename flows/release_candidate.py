"""The gate of a release: all four suites, strict, and a person's approval."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from passgate.flows.prefect_engine import evaluate_in_flow
from passgate.flows.sign_off import wait_for_sign_off
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName

_REQUEST = RunRequest()


@flow(name="release_candidate", flow_run_name="release_candidate {request.agent}")
async def release_candidate(request: RunRequest = _REQUEST) -> State[Any]:
    """The gate of a release: all four suites, strict, and a person's approval.

    With `wait_for_sign_off` it pauses until somebody approves or rejects. Its state is GatePassed, GateFailed,
    AwaitingSignOff, GateInconclusive, GateNotRun or GateCrashed."""
    return await evaluate_in_flow(GateName.RELEASE_CANDIDATE, request, wait_for_sign_off)
