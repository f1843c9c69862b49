"""The tools that passgate runs for an agent: each call is checked, counted, run and recorded once."""

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
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
_TURN_SECONDS = 5.0  # For a call that the model asked for before another


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


@dataclass(eq=False)
class _Expected:
    """A call that a model asked for and that its agent has not made."""

    asked: AskedCall
    reply: object  # What the calls of one reply have in common
    before: "_Expected | None"  # The call of one of these tools before it, in the same reply
    is_made: asyncio.Event = field(default_factory=asyncio.Event)


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
    _expected: list[_Expected] = field(default_factory=list)

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

    def normalise_name(self, called: str) -> str:
        """Return a model's name for a tool. Where its client puts a server before it, as in `passgate_book`, `crm.book`
        and `mcp_passgate_crm__book`, it becomes `mcp__passgate__book` or `mcp__crm__book`, whose parts graders know.
        """
        if called in self._names:
            return called
        for server in (SERVER, *self.servers):
            prefix = re.match(rf"(?:mcp[_-]+)?{server.replace('-', '[_-]')}[_.:/-]+", called, re.IGNORECASE)
            if prefix is None:
                continue
            rest, listed = called[prefix.end() :], self.listed("" if server == SERVER else server)
            found = rest if rest in listed else next((name for name in listed if _plain(name) == _plain(rest)), None)
            if found is not None:
                owner, tool = listed[found]
                return f"mcp__{owner}__{tool.name}"
        return called

    def task_name(self, called: str) -> str:
        """Return the name that a task has for a tool, as in transcripts: `book`, or `mcp__crm__book` of a server of the
        task, whatever a client puts before it.
        """
        return self.normalise_name(called).removeprefix(f"mcp__{SERVER}__")

    def serves(self, name: str) -> bool:
        """Return whether a name that an agent tells is that of a tool here, and the agent knows these tools."""
        return self.is_reached and self._has(name)

    def _has(self, name: str) -> bool:
        return any(is_same_tool(own, name) for own in self._names)

    @property
    def _names(self) -> set[str]:
        """The names of all tools, without their servers."""
        return {tool.name for _, tool in self.listed().values()}

    @property
    def not_made(self) -> list[str]:
        """The ids of the calls of these tools, by the names that clients give them, that the agent did not make."""
        named = tuple(f"mcp__{server}__" for server in (SERVER, *self.servers)) if self.is_reached else ()
        return [one.asked.call_id for one in self._expected if one.asked.tool.startswith(named)]

    def expect(self, call: AskedCall, reply: object) -> None:
        """Note a call that a model asked for in a reply, and that its budget and the task allow."""
        same = (one for one in reversed(self._expected) if one.reply is reply and self._has(one.asked.tool))
        self._expected.append(_Expected(call, reply, next(same, None)))

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
        call, expected = ToolCall(tool=name, arguments=dict(arguments)), self._take_expected(server, tool, arguments)
        if expected is None:
            return await self._run(server, tool, call, None)
        if expected.before is not None and self.toolbox.answers_all:
            # Agents may make the calls of one reply side by side. A recording has them in the order of the model.
            with suppress(TimeoutError):
                await asyncio.wait_for(expected.before.is_made.wait(), _TURN_SECONDS)
        try:
            return await self._run(server, tool, call, expected.asked)
        finally:
            expected.is_made.set()

    async def _run(self, server: str, tool: str, call: ToolCall, asked: AskedCall | None) -> ToolOutcome:
        """Run a call unless it must not run, and record it."""
        refusal = self._refusal(call, is_counted=asked is not None)
        if refusal:
            refused = call.model_copy(update={"refused": True, "is_error": False})
            self.recorder.record_call(refused, asked.call_id if asked else None)
            return ToolOutcome(refusal, is_error=True)
        started = time.monotonic()
        try:
            if server == SERVER or self.toolbox.answers_all:
                outcome = await self.toolbox.call(call.tool, call.arguments)
            else:
                outcome = await self.servers[server].call(tool, call.arguments)
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

    def _take_expected(self, server: str, tool: str, arguments: Mapping[str, Any]) -> _Expected | None:
        """Remove and return the call that a model asked for and that the agent makes now; `None` if no model did.

        The model's name for the tool may tell the server. An agent may fill in defaults, so the arguments may differ.
        """
        others = tuple(f"mcp__{other}__" for other in (SERVER, *self.servers) if other != server)
        own, given = f"mcp__{server}__{tool}", dict(arguments)

        def differs(one: _Expected) -> tuple[bool, bool]:
            return not strictly_equal(dict(one.asked.arguments), given), one.asked.tool != own

        names = [(one, one.asked.tool) for one in self._expected]
        same = [one for one, name in names if is_same_tool(tool, name) and not name.startswith(others)]
        found = min(same, key=differs, default=None)
        if found is not None:
            self._expected.remove(found)
        return found


def _plain(name: str) -> str:
    """Return a name as clients write it whose models allow fewer characters."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)
