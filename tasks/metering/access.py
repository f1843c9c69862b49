"""How an agent reaches its models in one trial."""

import asyncio
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.providers.registry import PROVIDERS, known_providers

if TYPE_CHECKING:
    from passgate.tasks.metering.trial_tools import TrialTools

PLACEHOLDER_KEY: Final = "passgate"  # What an agent sends as its key; the meter puts the real one in its place
MCP_VARIABLE: Final = "PASSGATE_MCP_URL"
SERVER: Final = "passgate"  # The name of the MCP server in the configuration of clients, and so in their tools' names
TOOL_VALUE: Final = "passgate/value"
"""The key in the metadata of an MCP result that holds a tool's result as it is: the content is text only."""
_NOWHERE: Final = "http://127.0.0.1:9/there-is-a-meter-once-a-trial-has-begun"


@dataclass(frozen=True, slots=True)
class TrialTranscript:
    """What is known of the agent's part of a trial, also of one that could not be measured."""

    transcript: Transcript
    error: MeasurementError | None = None  # Why it could not be measured

    def result(self) -> Transcript:
        """Return the transcript of a trial that could be measured. Raises the error of one that could not."""
        if self.error is not None:
            raise self.error
        return self.transcript


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model call of an agent is answered: as over HTTP, also where there is none."""

    status: int
    content: bytes  # A JSON document; from status 400 on an error
    headers: Mapping[str, str] = field(default_factory=dict)


class ModelAccess(Protocol):
    """The way to the models that one trial has. Its addresses and its key are good for this trial only."""

    base_urls: Mapping[str, str]
    """By provider, as in `http://127.0.0.1:PORT/TOKEN/openai/v1`; empty texts when there is no meter."""
    mcp_url: str  # The MCP server with the task's tools, as in `http://127.0.0.1:PORT/TOKEN/mcp`; empty without one
    api_key: str  # What the agent gives as its key; the meter puts the real one in its place
    variables: Mapping[str, str]
    """The environment variables that tell an agent all of this: the usual ones and those of its spec."""

    async def complete(self, content: bytes) -> ModelAnswer:
        """Ask a model from within this process, by the JSON body of a chat completion that is not streamed.

        It is admitted, counted and recorded as a request to the address of `openai` is.
        """

    @property
    def tools(self) -> "TrialTools | None":
        """The tools that passgate runs for the agent; `None` where there are none."""

    def over(self) -> asyncio.Future[None]:
        """Done once the trial must not go on: a budget is used up or a forbidden call was asked for."""

    @property
    def paid(self) -> float:
        """US dollars of the run's money that its calls have cost so far; estimated where nobody waited for a reply."""

    @property
    def could_know(self) -> bool:
        """Whether the agent could know how its trial goes: a call was answered, or it asked nobody here."""

    @property
    def seconds_waited(self) -> float:
        """How long calls waited for a turn, for another attempt or for money: time that is not the agent's."""

    async def transcript(self, reported: Transcript) -> TrialTranscript:
        """Return the transcript of the trial: what the meter saw, completed by what the agent reports.

        It has an error when the provider, a missing price or the run's cost cap kept the agent from working.
        """


class Unmetered:
    """The access of an agent that calls no model."""

    base_urls: Mapping[str, str] = dict.fromkeys(PROVIDERS, "")
    mcp_url = ""
    api_key = ""
    tools: "TrialTools | None" = None
    paid = 0.0
    seconds_waited = 0.0
    could_know = True

    def __init__(self) -> None:
        self.variables: Mapping[str, str] = {}

    async def complete(self, content: bytes) -> ModelAnswer:
        """There is no model to ask."""
        raise MeasurementError("the agent asks a model and has no way to one")

    def over(self) -> asyncio.Future[None]:
        """Nothing ends such a trial from here."""
        return asyncio.get_running_loop().create_future()

    async def transcript(self, reported: Transcript) -> TrialTranscript:
        """Return what the agent reports."""
        return TrialTranscript(reported)


def meter_addresses(root: str) -> dict[str, str]:
    """Return the base URL of each provider's APIs below the address of a trial's meter."""
    return {name: f"{root}/{name}{provider.base_path}" for name, provider in PROVIDERS.items()}


def model_variables(
    spec: AgentSpec, base_urls: Mapping[str, str], known: Collection[str], mcp_url: str = ""
) -> dict[str, str]:
    """Return the environment variables that lead an agent to its models and tools at these URLs: the usual ones of the
    `known` providers and those of its spec. No real key is among them.
    """
    variables = {MCP_VARIABLE: mcp_url} if mcp_url else {}
    for name, provider in PROVIDERS.items():
        own = spec.upstreams.get(name)
        if name in known:
            variables |= dict.fromkeys(provider.base_url_variables, base_urls[name])
            keys = (provider.key_variable, *(name for name in provider.other_keys if os.environ.get(name)))
            variables |= dict.fromkeys(keys, PLACEHOLDER_KEY)
        if own and own.api_key_variable:
            variables[own.api_key_variable] = PLACEHOLDER_KEY
    placeholders = {f"{{{PROVIDERS[name].placeholder}}}": url for name, url in base_urls.items()}
    placeholders |= {"{api_key}": PLACEHOLDER_KEY, "{mcp_url}": mcp_url, "{model}": spec.model or ""}
    for name, value in spec.variables.items():
        for placeholder, text in placeholders.items():
            value = value.replace(placeholder, text)
        variables[name] = value
    return variables


def variables_before_trials(spec: AgentSpec) -> dict[str, str]:
    """Return the same variables while there is no trial: no model can be reached."""
    return model_variables(spec, meter_addresses(_NOWHERE), known_providers(spec.upstreams, os.environ))
