"""Check before the first trial that every trial can run and be recorded: agent, prices, history, endpoints."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from passgate.tasks.agents import check_agent
from passgate.tasks.agents.llm_judge import judge_model, make_llm_judge
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.tracked_folders import open_history
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint
from passgate.tasks.model.price import price_remedy
from passgate.tasks.model.run import Plan
from passgate.tasks.providers.registry import PROVIDERS, Provider
from passgate.tasks.sandboxes.isolation import best_isolation, refuse_unisolated

if TYPE_CHECKING:
    from passgate.tasks.providers.endpoints import ResolvedEndpoint


def refuse_other_options(run: str, given: Mapping[str, Any]) -> None:
    """Raise `UsageError` that lists every option beside `--resume` that differs from the run's own.

    `given` maps fields of a request to the values on the command line.
    """
    original = RunStore.of(run).read_plan().request
    others = [
        f"--{name} {value}: the run has {_option(name, getattr(original, name))}"
        for name, value in given.items()
        if value != getattr(original, name)
    ]
    if others:
        remedy = "leave out the options that differ, or start a new run"
        raise UsageError(f"--resume continues {run} with the options it started with; {'; '.join(others)}; {remedy}")


def _option(name: str, value: Any) -> str:
    return f"no --{name}" if value is None else f"--{name} {value}"


def refuse_unrunnable(plan: Plan, checkout: Checkout) -> None:
    """Raise `UsageError` for whatever would prevent every trial from running or from being recorded."""
    for suites in dict.fromkeys((Path(plan.suites_folder), *(plan.suites_folder_for(suite) for suite in plan.brought))):
        check_agent(plan.agent, suites)
        make_llm_judge(plan.policy.judge, suites)
    if plan.agent.calls_models:
        from passgate.tasks.providers.endpoints import resolve_endpoints

        resolve_endpoints(plan.agent.upstreams, os.environ)
        # Trials on other machines check it there.
        if plan.policy.isolation == "required" and plan.request.runner_address is None:
            with temporary_folder("isolation") as folder:
                refuse_unisolated(best_isolation((), run_folder=folder))
    _refuse_unknown_price(plan)
    open_history(plan.history_location, checkout)
    recorded = plan.agent.model_dump_json()
    if run_masker(plan).json(recorded) != recorded:
        raise UsageError(
            "the agent, its command or its settings, contains the value of a secret, and passgate records agents: "
            "have the agent read it from an environment variable, which it inherits from passgate, or name a variable "
            "that holds no secret under `not_secrets` in gates.yaml"
        )


def _refuse_unknown_price(plan: Plan) -> None:
    """Raise `UsageError` for an unknown price of a model that is known before the first call."""
    tasks_with_budget = sum(task.budgets.max_cost_usd is not None for task in plan.tasks)
    why = plan.needs_price or (f"{tasks_with_budget} tasks have a cost budget" if tasks_with_budget else None)
    models = {plan.agent.fixed_model} if plan.agent.calls_models else set()
    if plan.request.max_cost is not None:
        models.add(judge_model(plan.policy.judge))
    for model in models:
        if why is not None and model and plan.prices.price(model) is None:
            raise UsageError(f"the price of the model {model!r} is unknown and {why}: {price_remedy(model)}")


_UNAUTHORIZED: Final = 401


def refuse_unreachable(agent: AgentSpec) -> None:
    """Raise an error for an endpoint that would make every trial an error.

    Check the endpoints that certainly are the agent's: its `upstreams`, that of an `openai` agent, the service of an
    `http` agent. Raise `UsageError` for a missing or refused key, which only the user can fix, and `MeasurementError`
    for an unavailable provider.
    """
    for name, endpoint in agent.own_endpoints:
        # Imported late: most runs of the reference call no model.
        from passgate.tasks.providers.endpoints import resolve_endpoint

        provider = PROVIDERS[name]
        target = resolve_endpoint(provider, endpoint, os.environ)
        _refuse_missing_key(agent, endpoint, target, provider)
        url, variable = f"{target.base_url}/{provider.models}", provider.base_url_variables[0]
        remedy = f"check the base URL of {name} ({variable} or `upstreams`) and the network"
        if _status(url, target.key_headers, target.base_url, remedy) == _UNAUTHORIZED:
            state = "is not valid there" if target.key else "is not set"
            raise UsageError(f"{url} answers 401 and {target.key_variable} {state}: set it to a valid key")
    if agent.kind is AgentKind.HTTP:
        _status(agent.target, {}, agent.target, "start the service, or correct the agent's URL")


def _refuse_missing_key(agent: AgentSpec, endpoint: Endpoint, target: "ResolvedEndpoint", provider: Provider) -> None:
    if target.key:
        return
    if endpoint.api_key_variable is not None:
        raise UsageError(f"{target.key_variable} is not set, and the agent {agent} reads its key from it: set it")
    if target.base_url == provider.url:
        raise UsageError(
            f"{target.key_variable} is not set, and {target.base_url} accepts no call without a key: set it, or name "
            "another endpoint with `upstreams` in agents.yaml"
        )


def _status(url: str, headers: Mapping[str, str], address: str, remedy: str) -> int | None:
    """Return the status of the answer to a GET. Raise `MeasurementError` if there is no connection."""
    from passgate.tasks.providers.probe import Unreachable, reach

    outcome = reach(url, headers)
    if isinstance(outcome, Unreachable):
        raise MeasurementError(f"{address} cannot be reached ({outcome.reason}), so no trial ran: {remedy}")
    return outcome.status
