"""Make the Prefect flow of a gate. Its parameters are the fields of a request: Prefect merges and checks them."""

import inspect
from typing import Any

from prefect import Flow, flow
from prefect.client.schemas.objects import State

from passgate.flows.prefect_engine import Settle, evaluate_in_flow
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName

_DESCRIPTION = "Its state is GatePassed, GateFailed, AwaitingSignOff, GateInconclusive, GateNotRun or GateCrashed."


def gate_flow(gate: GateName, settle: Settle | None = None) -> Flow[..., Any]:
    """Return the flow that runs a gate. `settle` decides a verdict that awaits a sign-off."""

    async def run(**options: Any) -> State[Any]:
        return await evaluate_in_flow(gate, RunRequest.model_validate(options), settle)

    fields = RunRequest.model_fields
    # Prefect reads the parameters from the signature and their descriptions from the docstring.
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.annotation)
            for name, field in fields.items()
        ]
    )
    described = (f"    {name}: {' '.join((field.description or '').split())}" for name, field in fields.items())
    run.__doc__ = "\n".join([_DESCRIPTION, "", "Args:", *described])
    return flow(name=str(gate), description=_DESCRIPTION, flow_run_name=f"{gate!s} {{agent}}")(run)
