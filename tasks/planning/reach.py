"""Whether the agent has a way to its models: a run that has none is refused before the first trial."""

import os
from collections.abc import Iterator
from typing import Final

from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint
from passgate.tasks.providers.endpoints import PROVIDERS, Provider, ResolvedEndpoint, resolved_endpoints
from passgate.tasks.providers.probe import Unreachable, reach

_PUBLIC: Final = frozenset(known.url for known in PROVIDERS.values())
"""Addresses that take no call without a key."""
_UNAUTHORIZED: Final = 401


def refuse_unreachable(agent: AgentSpec) -> None:
    """Find out before the first trial what would make an error of every one.

    Asked are the endpoints that are plainly the agent's: those of its `upstreams`, that of an `openai` agent, the
    service of an `http` agent. Raises `UsageError` for a key that is missing or refused, which only the user can mend,
    and `MeasurementError` for a provider that cannot be reached, which nobody has to have broken.
    """
    for provider, endpoint in own_endpoints(agent):
        target = resolved_endpoints(agent.upstreams, os.environ)[provider]
        _refuse_missing_key(agent, endpoint, target)
        _refuse_target(provider, target)
    if agent.kind is AgentKind.HTTP:
        _refuse_service(agent.target)


def own_endpoints(agent: AgentSpec) -> Iterator[tuple[Provider, Endpoint]]:
    """The providers that an agent plainly calls and the endpoints that it names: passgate's own loop has the first."""
    if not agent.calls_models:
        return
    if agent.kind is AgentKind.OPENAI or agent.upstreams.openai != Endpoint():
        yield "openai", agent.upstreams.openai
    if agent.kind is not AgentKind.OPENAI and agent.upstreams.anthropic != Endpoint():
        yield "anthropic", agent.upstreams.anthropic


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
    outcome = reach(asked, target.key_headers, uses_proxies=not target.is_loopback)
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
