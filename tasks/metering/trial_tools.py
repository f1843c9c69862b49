"""The tools that passgate runs for an agent: each call is checked, counted, run and recorded once."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.access import SERVER
from passgate.tasks.metering.ledger import Ledger
from passgate.tasks.metering.transcript_recorder import TranscriptRecorder
from passgate.tasks.model.json_values import strictly_equal
from passgate.tasks.model.task import Tool
from passgate.tasks.model.transcript import EndReason, ToolCall, is_same_tool
from passgate.tasks.providers.exchange import AskedCall

if TYPE_CHECKING:
    from passgate.tasks.metering.mcp_servers import ConnectedServer

Forbidden = Callable[[ToolCall], bool]


@dataclass(frozen=True)
class ToolOutcome:
    """The result of a tool call: any JSON value."""

    result: Any
    is_error: bool = False
    answer: Any = None
    """The answer of an MCP server as it came, which may contain images and more."""


class Toolbox(Protocol):
    """The tools of one trial: those of its task, or a recording that answers in their place."""

    @property
    def answers_all(self) -> bool:
        """Whether it answers the calls of MCP servers too."""

    @property
    def mismatch(self) -> str:
        """How a call differs from the recording; empty if none does."""

    @property
    def missing(self) -> str:
        """Which recorded calls did not come; empty if none is missing."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Run a tool. Return its errors too. Raise `MeasurementError` if it could not be run."""


@dataclass
class TrialTools:
    """The tools of one trial, as an agent outside of passgate calls them.

    A model asks for a call, and then the agent makes it: both are one call. It is counted and compared with the
    forbidden ones when the model asks. A call that no model asked for is counted and compared when it is made.
    """

    offered: Sequence[Tool]
    toolbox: Toolbox
    ledger: Ledger
    forbidden: Forbidden
    recorder: TranscriptRecorder
    servers: Mapping[str, "ConnectedServer"] = field(default_factory=dict)
    is_reached: bool = False  # Whether the agent has asked for the tools, or called one
    _asked: list[AskedCall] = field(default_factory=list)  # Calls that a model asked for and the agent has not made

    def with_usual_name(self, call: AskedCall) -> AskedCall:
        """Return a model's call. `passgate_book` and `mcp_passgate_book` become `mcp__passgate__book`, whose parts
        graders know.
        """
        for server in (SERVER, *self.servers):
            prefix = re.match(rf"(?:mcp[_-]+)?{re.escape(server)}[_-]+", call.tool, re.IGNORECASE)
            if prefix and any(is_same_tool(name, call.tool[prefix.end() :]) for name in self.names(server)):
                return replace(call, tool=f"mcp__{server}__{call.tool[prefix.end() :]}")
        return call

    def names(self, server: str) -> list[str]:
        """Return the names of the tools of a server."""
        offered: Sequence[Any] = self.offered if server == SERVER else self.servers[server].tools
        return [tool.name for tool in offered]

    def find(self, name: str) -> tuple[str, str]:
        """Return the server and the tool that a name means to a client that has all servers as one. A tool of the task
        wins, and then a real name before one with a server.
        """
        servers = (SERVER, *self.servers)
        found = next((server for server in servers if name in self.names(server)), None)
        if found is not None:
            return found, name
        server, _, tool = name.partition("__")
        return (server, tool) if server in self.servers else (SERVER, name)

    def expect(self, call: AskedCall) -> None:
        """Note a call that a model asked for and that its budget and the task allow."""
        self._asked.append(call)

    async def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Run a tool of a server for the agent. Return what it tells the model, which may be that passgate refused the
        call.
        """
        self.is_reached = True
        name = tool if server == SERVER else f"mcp__{server}__{tool}"
        call, asked = ToolCall(tool=name, arguments=dict(arguments)), self._take_asked(tool, arguments)
        refusal = self._refusal(call, is_counted=asked is not None)
        if refusal:
            refused = call.model_copy(update={"refused": True, "is_error": False})
            self.recorder.record_call(refused, asked.call_id if asked else None)
            return ToolOutcome(refusal, is_error=True)
        started = time.monotonic()
        try:
            if server == SERVER or self.toolbox.answers_all:
                outcome = await self.toolbox.call(tool, arguments)
            else:
                outcome = await self.servers[server].call(tool, arguments)
        except MeasurementError as error:
            self.ledger.give_up("tool_failed", error)
            return ToolOutcome(str(error), is_error=True)
        made = call.model_copy(
            update={
                "result": outcome.result,
                "is_error": outcome.is_error,
                "duration_ms": (time.monotonic() - started) * 1000,
            }
        )
        self.recorder.record_call(made, asked.call_id if asked else None)
        if self.toolbox.mismatch:
            self.ledger.finish(EndReason.REPLAY_MISMATCH, self.toolbox.mismatch)
        return outcome

    def _refusal(self, call: ToolCall, *, is_counted: bool) -> str:
        """Return why a call must not run; empty if it may. A forbidden call, or one too many, ends the trial."""
        named = call.model_copy(update={"tool": f"mcp__{SERVER}__{call.tool}"})
        if self.ledger.end is None and (self.forbidden(call) or self.forbidden(named)):
            self.ledger.finish(EndReason.FORBIDDEN_CALL, f"the agent made the forbidden tool call {call.tool}")
        elif self.ledger.end is None and not is_counted:
            self.ledger.take_tool_call()
        return "" if self.ledger.end is None else f"passgate ended this trial: {self.ledger.end[1]}"

    def _take_asked(self, tool: str, arguments: Mapping[str, Any]) -> AskedCall | None:
        """Remove and return the call that a model asked for and that the agent makes now; `None` if no model did.

        An agent may fill in defaults, so the arguments of the two may differ.
        """
        same = [call for call in self._asked if is_same_tool(tool, call.tool)]
        equal = [call for call in same if strictly_equal(dict(call.arguments), dict(arguments))]
        if not same:
            return None
        found = (equal or same)[0]
        self._asked.remove(found)
        return found
