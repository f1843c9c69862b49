"""Diagnose an agent: its start, its endpoints, its keys, the price of its model."""

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from passgate.tasks.agents import agent_class, check_agent
from passgate.tasks.agents.interface import PROBE_SECONDS
from passgate.tasks.agents.presets import find_preset
from passgate.tasks.errors import PassgateError, UsageError
from passgate.tasks.model.agent import KINDS, AgentSpec, Endpoint
from passgate.tasks.model.checks import State, Symptom
from passgate.tasks.model.price import PriceTable, price_remedy
from passgate.tasks.providers.endpoints import resolve_endpoint
from passgate.tasks.providers.probe import probe
from passgate.tasks.providers.registry import PROVIDERS

_REFUSALS = frozenset({401, 403})  # The endpoint is there and does not let us in
_NOT_FOUND = 404
USUAL_KEYS = tuple(provider.key_variable for provider in PROVIDERS.values())


async def diagnose(agent: AgentSpec, suites: Path, prices: PriceTable, needs_price: str | None) -> list[Symptom]:
    """Check whether an agent can be started, its endpoints answer and its model has a price. Call no model.
    `needs_price` says why an unknown price is an error, or is `None` if it is not.
    """
    subject, kind = f"agent {agent}", agent_class(agent.kind)
    try:
        check_agent(agent, suites)
    except PassgateError as error:
        return [Symptom(subject, agent.kind, State.FAILED, str(error))]
    symptoms = [await asyncio.to_thread(kind.describe, agent)]
    if not agent.calls_models:
        return symptoms
    answers = [_endpoint(subject, provider, endpoint) for provider, endpoint in agent.own_endpoints]
    answered, probed = await asyncio.gather(asyncio.gather(*answers), kind.probe(agent))
    symptoms += [*answered, *probed]
    if not answered and "variables" in KINDS[agent.kind].settings:
        preset = find_preset(agent.target)
        symptoms.append(_usual_keys(subject, (preset.key,) if preset else USUAL_KEYS))
    if agent.fixed_model is not None:
        return [*symptoms, price_symptom(subject, agent.fixed_model, prices, needs_price)]
    return [*symptoms, Symptom(subject, "model", State.OK, "not known before the agent asks for one")]


async def _endpoint(subject: str, name: str, endpoint: Endpoint) -> Symptom:
    symptom = partial(Symptom, subject, f"endpoint {name}")
    try:
        target = resolve_endpoint(PROVIDERS[name], endpoint, os.environ)
    except UsageError as error:
        return symptom(State.FAILED, str(error))
    answer = await probe(PROVIDERS[name], target, seconds=PROBE_SECONDS)
    found = f"{answer.asked} answers {answer.status}, {target.key_variable} is {'set' if target.key else 'not set'}"
    if answer.status is None:
        return symptom(State.FAILED, answer.trouble, f"check base_url of upstreams.{name}, and the network")
    if answer.status in _REFUSALS:
        return symptom(State.FAILED, found, f"put a key that is valid there into {target.key_variable}")
    if endpoint.api_key_variable is not None and not target.key:
        return symptom(State.FAILED, found, f"set {target.key_variable}, which upstreams.{name} names")
    if answer.status == _NOT_FOUND:
        return symptom(State.WARNING, found, f"check base_url of upstreams.{name}: few endpoints have no such list")
    return symptom(State.OK, found)


def _usual_keys(subject: str, keys: Sequence[str]) -> Symptom:
    sources = {provider.key_variable: provider.key_source(os.environ) for provider in PROVIDERS.values()}
    keys = [sources.get(key, key) for key in keys]
    found = ", ".join(f"{name} is {'set' if os.environ.get(name) else 'not set'}" for name in keys)
    if any(os.environ.get(name) for name in keys):
        return Symptom(subject, "keys", State.OK, found)
    remedy = "if it calls models: set one of them, or name the endpoints and their keys with `upstreams`"
    if len(keys) == 1:
        remedy = f"set {keys[0]}, or name the endpoint and its key with `upstreams`"
    return Symptom(subject, "keys", State.WARNING, found, remedy)


def price_symptom(subject: str, model: str, prices: PriceTable, needs_price: str | None) -> Symptom:
    """Return whether the price of a model is known. An unknown price fails if `needs_price` says why."""
    price = prices.price(model)
    if price is not None:
        found = f"{model} costs ${price.input:g} in and ${price.output:g} out per million tokens"
        return Symptom(subject, "price", State.OK, found)
    found = f"the price of {model} is not known" + (f", and {needs_price}" if needs_price else "")
    return Symptom(subject, "price", State.FAILED if needs_price else State.WARNING, found, price_remedy(model))
