"""What every agent is, and what it is given."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, Self

from passgate.tasks.files.proxies import exceptions_with_loopback
from passgate.tasks.metering.access import MCP_VARIABLE, TOOL_VALUE, ModelAccess
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.checks import State, Symptom
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.sandbox import Sandbox
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.transcript import Message, Transcript

PROBE_SECONDS: Final = 5.0  # For each question of `doctor`


class AgentSandbox(Sandbox, Protocol):
    """A trial's sandbox as agents see it."""

    @property
    def network(self) -> bool:
        """Whether the task or its sandbox asks for the network."""

    @property
    def files(self) -> Mapping[str, Path]:
        """Where the agent finds the files and images of the task's messages, by the names that they have there."""

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment variables that the task wants for the agent. Its commands have them; `run` sees to that."""


class ToolError(Exception):
    """A tool reported an error, or passgate refused the call."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One trial as an agent is asked to make it. A Python agent's function gets this as its only argument."""

    task_id: str
    trial: int
    prompt: str
    """What the user says now; in a conversation of several turns, the newest message. In the first turn of a task that
    asks in `messages` it is all of them as one text."""
    inputs: Mapping[str, Any]
    workspace: Path  # Of an agent with `uses_workspace`
    budgets: Budgets
    test_id: str = ""  # What the task's file calls it, which for eval files is the id of the test
    turn: int = 0  # From 0; above it in a conversation of several turns
    history: tuple[Message, ...] = ()
    """What was said before this turn, by both sides. Where the task asks in `messages`, it begins with them as the
    agent took them: as one text, or the users' and the system's."""
    messages: tuple[TaskMessage, ...] = ()
    """What the task asks, the same in every turn, where it is more than one text; then `prompt` of the first turn says
    nothing else. What an assistant says in them is given and no step of the trial."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Where the files and images of `messages` lie, by the names that they have there."""
    session: str = ""  # The same text in every turn of a trial, and in no other trial
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that lead to the models, `OPENAI_BASE_URL` among them; also set while the agent runs."""

    tools: tuple[Mapping[str, Any], ...] = ()
    """The tools that passgate runs for the agent, each with `name`, `description` and `parameters`, a JSON Schema."""

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call one of `tools`. Return its result, any JSON value. Raise `ToolError` if the tool reports an error or
        passgate refuses the call.
        """
        if MCP_VARIABLE not in self.variables:
            remedy = "declare environment.tools in the task, and install the package: pip install 'passgate[mcp]'"
            raise ToolError(f"this trial has no tools: {remedy}")
        return await asyncio.to_thread(_call_tool, self.variables[MCP_VARIABLE], name, arguments or {})

    @property
    def history_since_messages(self) -> tuple[Message, ...]:
        """What was said between `messages` and this turn: the history from the agent's first answer on."""
        return tuple(dropwhile(lambda message: message.role != "assistant", self.history))


def _call_tool(url: str, name: str, arguments: Mapping[str, Any]) -> Any:
    """Call a tool of the trial's MCP server."""
    from passgate.tasks.agents.mcp_stdio import post  # Few agents call tools so

    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": dict(arguments)}}
    try:
        answer = json.loads(post(url, json.dumps(call).encode()))
    except OSError as error:
        raise ToolError(f"the tool {name} cannot be called: {error}") from error
    if "error" in answer:
        raise ToolError(str(answer["error"].get("message")))
    result = answer["result"]
    if result.get("isError"):
        raise ToolError("".join(part.get("text", "") for part in result["content"]))
    return result["_meta"][TOOL_VALUE]


def symptom(spec: AgentSpec, what: str, state: State, found: str, remedy: str = "") -> Symptom:
    """Return what `doctor` says of one thing about an agent."""
    return Symptom(f"agent {spec}", what, state, found, remedy)


class Agent(Protocol):
    """A system under test. Derive from it to have what most agents have: conversations, nothing that ends with a trial
    or with the agent, nothing more to look at.
    """

    has_conversations: ClassVar[bool] = True
    """False where its first turn is the whole conversation: what the user says is recorded, or of no use to it."""
    uses_workspace: ClassVar[bool] = True
    """False where nothing but the tools of a task works in the workspace, so that a task without any needs none."""

    @classmethod
    def from_spec(cls, spec: AgentSpec, suites_folder: Path) -> Self:
        """Return the agent, checked as far as possible without running it. Raises `UsageError`."""
        return cls()

    @classmethod
    def describe(cls, spec: AgentSpec) -> Symptom:
        """Return what `doctor` says of an agent that can be made."""
        found = f"{spec.kind}:{spec.target}" if spec.target else f"{spec.kind} needs nothing"
        return symptom(spec, spec.kind, State.OK, found)

    @classmethod
    async def probe(cls, spec: AgentSpec) -> list[Symptom]:
        """Find out what `doctor` says over the network, beside the endpoints of models. No model is called."""
        return []

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        """Answer one turn of a trial in at most `seconds`.

        Returns what happened in this turn. What the agent does wrong is in the transcript (`end`); raises
        `MeasurementError` if the agent is not at fault.
        """

    async def end_session(self, session: str) -> None:
        """End what the agent has running for a trial, which is known by `Attempt.session`, before it is graded."""
        return

    def close(self) -> None:
        """End what the agent has running at all. This may block for some seconds."""
        return


def model_environment(environment: Mapping[str, str], access: ModelAccess) -> dict[str, str]:
    """Return the variables that lead an agent with this environment to its models; empty without a meter.

    The meter is on this machine, so no proxy of the environment may be asked for it.
    """
    if not access.variables:
        return {}
    return {**access.variables, **exceptions_with_loopback({**environment, **access.variables})}
