"""The secrets of a run: which environment variables hold them."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.task import IN_TEMPLATE, EvalTask
from passgate.tasks.providers.registry import PROVIDERS

_USUAL_NAME: Final = re.compile(r".*(?:_KEY|_TOKEN)|.*(?:SECRET|PASSWORD|CREDENTIAL).*", re.IGNORECASE)
_LEAST_USUAL: Final = 12  # Characters of a value that nobody has declared: `true` or a port is no secret


def secret_variables(
    environment: Mapping[str, str],
    policy: Policy | None,
    agents: Iterable[AgentSpec] = (),
    tasks: Iterable[EvalTask] = (),
) -> list[str]:
    """Return the environment variables whose values are masked, sorted: those that the policy declares, those with the
    keys of the judge and the agents, those that MCP servers get, and those that have the name and the value
    of a secret.
    """
    named = set[str]()
    not_secrets = set[str]()
    if policy is not None:
        named = {*policy.secrets, policy.judge.api_key_variable}
        not_secrets = set(policy.not_secrets)
    for agent in agents:
        own = {name: endpoint.api_key_variable for name, endpoint in agent.upstreams.items()}
        named |= {own.get(name) or provider.key_variable for name, provider in PROVIDERS.items()}
        named |= {name for provider in PROVIDERS.values() for name in provider.other_keys}
        named |= _variables_in(agent.http.headers)
    for server in (server for task in tasks for server in task.mcp_servers.values()):
        named |= _variables_in(server.headers) | _variables_in(server.variables)
    usual = {name for name, value in environment.items() if _USUAL_NAME.fullmatch(name) and _is_like_secret(value)}
    return sorted(name for name in named | (usual - not_secrets) if environment.get(name))


def _variables_in(templates: Mapping[str, str]) -> set[str]:
    return {name for template in templates.values() for name in IN_TEMPLATE.findall(template)}


def _is_like_secret(value: str) -> bool:
    return len(value) >= _LEAST_USUAL and any(map(str.isalpha, value)) and any(map(str.isdigit, value))


def masker_for(policy: Policy | None, *agents: AgentSpec, tasks: Iterable[EvalTask] = ()) -> Masker:
    """Return the masker of the values that the secret variables have now."""
    return Masker(os.environ[name] for name in secret_variables(os.environ, policy, agents, tasks))


def run_masker(context: RunContext) -> Masker:
    """Return the masker of a run's secrets."""
    return masker_for(context.policy, context.agent, tasks=context.tasks)
