"""What a run needs before its first trial: an agent that can be made, known prices, places that can be written."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from passgate.tasks.agents import check_agent
from passgate.tasks.agents.llm_judge import judge_model, make_llm_judge
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.history.masking import masker_of
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.earlier_runs import open_history
from passgate.tasks.integrity.git import Checkout
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint
from passgate.tasks.model.price import price_remedy
from passgate.tasks.model.run import Plan
from passgate.tasks.providers.endpoints import PROVIDERS, Provider, ResolvedEndpoint, resolved_endpoints
from passgate.tasks.providers.probe import Unreachable, reach
from passgate.tasks.sandboxes.isolation import best_isolation, refuse_unisolated


def refuse_other_options(run: str, given: Mapping[str, Any]) -> None:
    """Raise `UsageError` with every option beside `--resume` that is not the run's own. `given` has those of the
    command line, by their fields of a request.
    """
    begun_with = RunStore.of(run).read_plan().request
    others = [
        f"--{name} {value}: the run has {_option(name, getattr(begun_with, name))}"
        for name, value in given.items()
        if value != getattr(begun_with, name)
    ]
    if others:
        remedy = "leave out the options that differ, or start a new run"
        raise UsageError(f"--resume carries {run} on with the options it started with; {'; '.join(others)}; {remedy}")


def _option(name: str, value: Any) -> str:
    return f"no --{name}" if value is None else f"--{name} {value}"


def refuse_unrunnable(plan: Plan, checkout: Checkout) -> None:
    """Find out before the first trial what would keep all of them from being run or recorded. Raises `UsageError`."""
    for suites in dict.fromkeys((Path(plan.suites_folder), *(plan.folder_of(suite) for suite in plan.brought))):
        check_agent(plan.agent, suites)
        make_llm_judge(plan.policy.judge, suites)
    if plan.agent.calls_models:
        resolved_endpoints(plan.agent.upstreams, os.environ)
        # Trials elsewhere find out there.
        if plan.policy.isolation == "required" and plan.request.runner_address is None:
            with temporary_folder("isolation") as folder:
                refuse_unisolated(best_isolation((), run_folder=folder))
    _refuse_unknown_price(plan)
    open_history(plan.history_location, checkout)
    recorded = plan.agent.model_dump_json()
    if masker_of(plan).json(recorded) != recorded:
        raise UsageError(
            "the agent, its command or its settings, contains the value of a secret, and passgate records agents: "
            "have the agent read it from an environment variable, which it inherits from passgate, or name a variable "
            "that holds no secret under `not_secrets` in gates.yaml"
        )


def _refuse_unknown_price(plan: Plan) -> None:
    """Find out before the first call, where the models are known before it."""
    tasks_with_budget = sum(task.budgets.max_cost_usd is not None for task in plan.tasks)
    why = plan.needs_price or (f"{tasks_with_budget} tasks have a cost budget" if tasks_with_budget else None)
    models = {plan.agent.fixed_model} if plan.agent.calls_models else set()
    if plan.request.max_cost is not None:
        models.add(judge_model(plan.policy.judge))
    for model in models:
        if why is not None and model and plan.prices.price_of(model) is None:
            raise UsageError(f"the price of the model {model!r} is unknown and {why}: {price_remedy(model)}")


_PUBLIC: Final = frozenset(known.url for known in PROVIDERS.values())  # Addresses that take no call without a key
_UNAUTHORIZED: Final = 401


def refuse_unreachable(agent: AgentSpec) -> None:
    """Find out before the first trial what would make an error of every one.

    Asked are the endpoints that are plainly the agent's: those of its `upstreams`, that of an `openai` agent, the
    service of an `http` agent. Raises `UsageError` for a key that is missing or refused, which only the user can mend,
    and `MeasurementError` for a provider that cannot be reached, which nobody has to have broken.
    """
    for provider, endpoint in agent.own_endpoints:
        target = resolved_endpoints(agent.upstreams, os.environ)[provider]
        _refuse_missing_key(agent, endpoint, target)
        _refuse_target(provider, target)
    if agent.kind is AgentKind.HTTP:
        _refuse_service(agent.target)


def _refuse_missing_key(agent: AgentSpec, endpoint: Endpoint, target: ResolvedEndpoint) -> None:
    if target.key:
        return
    if endpoint.api_key_variable is not None:
        raise UsageError(f"{target.key_variable} is not set, and the agent {agent} reads its key from it: set it")
    if target.base_url in _PUBLIC:
        raise UsageError(
            f"{target.key_variable} is not set, and {target.base_url} accepts no call without a key: set it, or name "
            "another endpoint with `upstreams` in agents.yaml"
        )


def _refuse_target(provider: Provider, target: ResolvedEndpoint) -> None:
    asked = f"{target.base_url}/{PROVIDERS[provider].models}"
    outcome = reach(asked, target.key_headers)
    if isinstance(outcome, Unreachable):
        remedy = f"check the base URL of {provider} ({provider.upper()}_BASE_URL or `upstreams`) and the network"
        raise _no_trial(target.base_url, outcome, remedy)
    if outcome.status == _UNAUTHORIZED:
        state = "is not valid there" if target.key else "is not set"
        raise UsageError(f"{asked} answers 401 and {target.key_variable} {state}: set it to a valid key")


def _refuse_service(address: str) -> None:
    outcome = reach(address, {})
    if isinstance(outcome, Unreachable):
        raise _no_trial(address, outcome, "start the service, or correct the agent's URL")


def _no_trial(address: str, outcome: Unreachable, remedy: str) -> MeasurementError:
    return MeasurementError(f"{address} cannot be reached ({outcome.reason}), so no trial ran: {remedy}")
