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
    is_reached: bool = False  # Whether the agent knows the tools: it has asked for them, or called one
    _asked: list[AskedCall] = field(default_factory=list)  # Calls that a model asked for and the agent has not made

    def listed(self, server: str = "") -> dict[str, tuple[str, Any]]:
        """Return the tools that a client of a server sees, by their names there, each with its server. A client of no
        server in particular sees those of all: a name that is taken already then has its server before it.
        """
        found: dict[str, tuple[str, Any]] = {}
        for one in (server,) if server else (SERVER, *self.servers):
            for tool in self.offered if one == SERVER else self.servers[one].tools:
                found[f"{one}__{tool.name}" if tool.name in found else tool.name] = one, tool
        return found

    def find(self, name: str, server: str = "") -> tuple[str, str]:
        """Return the server and the tool that a name means to a client of a server, or of all. A tool of the task wins,
        and then a real name before one with a server.
        """
        listed = self.listed(server)
        if name in listed:
            return listed[name][0], listed[name][1].name
        named, _, tool = name.partition("__")
        return (named, tool) if not server and named in self.servers else (server or SERVER, name)

    def with_usual_name(self, call: AskedCall) -> AskedCall:
        """Return a model's call. Where its client puts a server before the tool, as in `passgate_book`, `crm.book` and
        `mcp_passgate_crm__book`, it becomes `mcp__passgate__book` or `mcp__crm__book`, whose parts graders know.
        """
        if call.tool in self._names:
            return call
        for server in (SERVER, *self.servers):
            prefix = re.match(rf"(?:mcp[_-]+)?{re.escape(server)}[_.:/-]+", call.tool, re.IGNORECASE)
            if prefix is None:
                continue
            rest = _plain(call.tool[prefix.end() :])
            for name, (owner, tool) in self.listed("" if server == SERVER else server).items():
                if _plain(name) == rest:
                    return replace(call, tool=f"mcp__{owner}__{tool.name}")
        return call

    def serves(self, name: str) -> bool:
        """Return whether a name that an agent tells is that of a tool here, and the agent knows these tools."""
        return self.is_reached and any(is_same_tool(own, name) for own in self._names)

    @property
    def _names(self) -> set[str]:
        """The names of all tools, without their servers."""
        return {tool.name for _, tool in self.listed().values()}

    @property
    def not_made(self) -> list[str]:
        """The ids of the calls of these tools, by the names that clients give them, that the agent did not make."""
        named = tuple(f"mcp__{server}__" for server in (SERVER, *self.servers)) if self.is_reached else ()
        return [call.call_id for call in self._asked if call.tool.startswith(named)]

    def expect(self, call: AskedCall) -> None:
        """Note a call that a model asked for and that its budget and the task allow."""
        self._asked.append(call)

    @property
    def descriptions(self) -> tuple[Mapping[str, Any], ...]:
        """Each tool's `name`, `description` and `parameters`, a JSON Schema."""
        return tuple(
            {
                "name": name,
                "description": tool.description or "",
                "parameters": tool.parameters if isinstance(tool, Tool) else tool.input_schema,
            }
            for name, (_, tool) in self.listed().items()
        )

    async def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Run a tool of a server for the agent. Return what it tells the model, which may be that passgate refused the
        call.
        """
        self.is_reached = True
        name = tool if server == SERVER else f"mcp__{server}__{tool}"
        call, asked = ToolCall(tool=name, arguments=dict(arguments)), self._take_asked(server, tool, arguments)
        refusal = self._refusal(call, is_counted=asked is not None)
        if refusal:
            refused = call.model_copy(update={"refused": True, "is_error": False})
            self.recorder.record_call(refused, asked.call_id if asked else None)
            return ToolOutcome(refusal, is_error=True)
        started = time.monotonic()
        try:
            if server == SERVER or self.toolbox.answers_all:
                outcome = await self.toolbox.call(name, arguments)
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
        """Return why a call must not run; empty if it may. A forbidden call, or one too many, ends the trial.

        A call that was counted when the model asked for it may run, also if another one of the same reply was refused.
        """
        named = call.model_copy(update={"tool": f"mcp__{SERVER}__{call.tool}"})
        if self.forbidden(call) or self.forbidden(named):
            self.ledger.finish(EndReason.FORBIDDEN_CALL, f"the agent made the forbidden tool call {call.tool}")
        elif is_counted:
            return ""
        elif self.ledger.end is None:
            self.ledger.take_tool_call()
        return "" if self.ledger.end is None else f"passgate ended this trial: {self.ledger.end[1]}"

    def _take_asked(self, server: str, tool: str, arguments: Mapping[str, Any]) -> AskedCall | None:
        """Remove and return the call that a model asked for and that the agent makes now; `None` if no model did.

        The model's name for the tool may tell the server. An agent may fill in defaults, so the arguments may differ.
        """
        others = tuple(f"mcp__{other}__" for other in (SERVER, *self.servers) if other != server)
        same = [one for one in self._asked if is_same_tool(tool, one.tool) and not one.tool.startswith(others)]
        if not same:
            return None
        own, given = f"mcp__{server}__{tool}", dict(arguments)
        found = min(same, key=lambda one: (not strictly_equal(dict(one.arguments), given), one.tool != own))
        self._asked.remove(found)
        return found


def _plain(name: str) -> str:
    """Return a name as clients write it whose models allow fewer characters."""
    return re.sub(r"[^\w-]", "_", name, flags=re.ASCII)
