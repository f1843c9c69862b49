"""The gate of a release: all four suites, strict."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from passgate.flows.evaluate import evaluate
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName

_REQUEST = RunRequest()


@flow(name="release_candidate", flow_run_name="release_candidate {request.agent}")
async def release_candidate(request: RunRequest = _REQUEST) -> State[Any]:
    """The gate of a release: all four suites, strict.

    Its state is GatePassed, GateFailed, GateInconclusive, GateNotRun or GateCrashed."""
    return await evaluate(GateName.RELEASE_CANDIDATE, request)
