"""The full record of a trial's conversation, of one shape for every agent."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from passgate.tasks.model.base import Frozen

MOST: Final = 10**12  # Of dollars, milliseconds and tokens: sums of what is larger may be no number
Amount = Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=0, le=MOST)]


class ToolCall(Frozen):
    """One call of a tool and what came of it."""

    tool: str
    arguments: dict[str, Any] = {}
    result: Any = None
    is_error: bool | None = False
    """`None` is not known: most providers' APIs do not say which results are errors."""
    duration_ms: Amount | None = None
    refused: bool = False
    """Taken out of the model's reply because it is forbidden: the agent never saw it."""


def is_same_tool(tool: str, called: str) -> bool:
    """Return whether a call means a tool: by its own name, or with its server before it, as in `mcp__shop__refund`,
    `shop__refund`, `shop.refund` and `shop/refund`.
    """
    return called == tool or (called.endswith(tool) and called.removesuffix(tool).endswith(("__", ".", ":", "/")))


class Usage(Frozen):
    """What model calls used; `None` is not known, which is not 0."""

    tokens_in: Tokens | None = None
    """All tokens into the model, those from and to the provider's cache included."""
    tokens_cached: Tokens | None = None
    """Of `tokens_in`, those that were read from the provider's cache."""
    tokens_cache_write: Tokens | None = None
    """Of `tokens_in`, those that were written to the provider's cache."""
    tokens_out: Tokens | None = None
    cost_usd: Amount | None = None


def total_usage(usages: Sequence[Usage]) -> Usage:
    """Return the sum of the usages. A figure that one of them lacks is unknown in the sum."""

    def total(name: str) -> Any:
        amounts = [getattr(usage, name) for usage in usages]
        return None if None in amounts else min(sum(amounts), MOST)

    return Usage(**{name: total(name) for name in Usage.model_fields})


class Message(Frozen):
    """One message. An assistant message is one model call: a step."""

    role: Literal["system", "user", "assistant"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    latency_ms: Amount | None = None
    """From the request of a step to its last token."""
    time_to_first_token: Amount | None = None
    """Seconds from the request of a step to its first token."""
    model: str = ""
    """The model of a step, as the provider names it."""


class EndReason(StrEnum):
    """How the agent's part of a trial ended."""

    COMPLETED = "completed"
    CRASHED = "crashed"
    NOT_STARTED = "not_started"
    """Its command, or the script that the command names, is not there or cannot be run."""
    TIMED_OUT = "timed_out"
    OUTPUT_LIMIT = "output_limit"
    UNREADABLE = "unreadable"
    """What it gave as its transcript or answer is none that passgate can read or record."""
    OVER_BUDGET = "over_budget"
    """The meter refused a call that no budget was left for."""
    FORBIDDEN_CALL = "forbidden_call"
    """The model asked for a forbidden tool call; it was taken out of the reply."""
    REPLAY_MISMATCH = "replay_mismatch"
    """The tool calls are not those of the recording that they are held against."""


END_IN_WORDS = {
    EndReason.CRASHED: "the agent crashed",
    EndReason.NOT_STARTED: "the agent could not be started",
    EndReason.OUTPUT_LIMIT: "passgate ended the agent because it printed too much",
    EndReason.UNREADABLE: "the agent left no usable transcript",
    EndReason.FORBIDDEN_CALL: "the agent was stopped",
    EndReason.REPLAY_MISMATCH: "the tool calls differ from the recording",
}
"""How the reason of a trial begins that failed because of its end."""


class ChangeKind(StrEnum):
    """What became of a file."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class ChangedFile(Frozen):
    """A file of the workspace that is not as it was before the agent began."""

    path: str
    """In the workspace, with `/` between folders."""
    change: ChangeKind
    size: int | None = None
    """In bytes, after the agent has ended; `None` if the file is deleted."""
    diff: str | None = None
    """A unified diff; `None` if the file is large or no text, or if its earlier content is not known."""


class FileChanges(Frozen):
    """The files that an agent added, modified or deleted in its workspace, in the order of their paths."""

    files: tuple[ChangedFile, ...] = ()
    left_out: int = 0
    """The number of changed files that are not in `files`."""
    too_many_files: bool = False
    """Whether the workspace had too many files to compare them: then none is listed."""

    @property
    def remark(self) -> str:
        """What `files` does not say; empty if it says everything."""
        if self.too_many_files:
            return "the workspace has too many files to compare them"
        more = "one more changed file" if self.left_out == 1 else f"{self.left_out:,} more changed files"
        return more if self.left_out else ""


class Transcript(Frozen):
    """What an agent said and did in one trial."""

    messages: tuple[Message, ...] = ()
    output: str = ""
    """The final answer."""
    usage: Usage = Usage()
    """Of the whole trial, where the messages do not say it step by step."""
    complete: bool = True
    """Whether `messages` holds every step and tool call. An agent that only prints text leaves this false."""
    end: EndReason = EndReason.COMPLETED
    detail: str = ""
    """What the end reason needs to be understood: the exit code, the last lines of the error output."""
    printed: str = ""
    """What a Python agent printed, its last 64 KiB, or what a command wrote to standard error, its last 16,000
    characters.
    """
    wall_time_seconds: float = 0.0
    file_changes: FileChanges | None = None
    """Of the workspace; passgate compares it, whatever an agent reports. `None` if the workspace was not used."""

    @property
    def steps(self) -> tuple[Message, ...]:
        return tuple(message for message in self.messages if message.role == "assistant")

    @property
    def last_words(self) -> str:
        """The last text of the agent; empty if it said nothing."""
        return next((step.content for step in reversed(self.steps) if step.content), "")

    @property
    def whole_usage(self) -> Usage:
        """What the trial used: its own figures, else the sums over the steps, where every step has one."""
        of_steps = total_usage([step.usage for step in self.steps]) if self.steps else Usage()
        return of_steps.model_copy(update=self.usage.model_dump(exclude_none=True))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for message in self.messages for call in message.tool_calls)
