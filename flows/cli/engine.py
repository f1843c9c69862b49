"""Prefect as the command line needs it: quiet, patient, and with nothing to start."""

import os
from typing import Any

from passgate.tasks.errors import EngineError
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName

_SETTINGS = {
    # Starting the embedded server takes long on a busy machine; Prefect gives up after 20 s.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    # One by one, the embedded server loses most task runs of a flow that ends quickly.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    # The verdict says what Prefect would log.
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
}


async def run_gate(gate: GateName, request: RunRequest) -> BaseException | None:
    """Run a gate's flow; gives what went wrong beside the gate itself, if anything did."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        state = await _flow(gate)(request, return_state=True)
    except Exception as error:  # noqa: BLE001 - the flow's own errors are in its state, so this is Prefect's
        server = os.environ.get("PREFECT_API_URL", "")
        remedy = f"check PREFECT_API_URL ({server}) or unset it" if server else "a run is resumed with --resume last"
        return EngineError(f"Prefect broke down: {error}; {remedy}")
    failure = await state.aresult(raise_on_failure=False) if not state.is_completed() else None
    return failure if isinstance(failure, BaseException) else None


def _flow(gate: GateName) -> Any:
    match gate:
        case GateName.CI_MERGE:
            from passgate.flows.ci_merge import ci_merge

            return ci_merge
        case GateName.NIGHTLY:
            from passgate.flows.nightly import nightly

            return nightly
        case GateName.RELEASE_CANDIDATE:
            from passgate.flows.release_candidate import release_candidate

            return release_candidate
