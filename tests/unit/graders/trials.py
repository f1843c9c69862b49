"""Trials to grade, made from as little as a test wants to say, and who grades them."""

from collections.abc import Awaitable, Callable
from typing import Any

from passgate.tasks.graders.evidence import Evidence
from passgate.tasks.model.grade import JudgeReply, JudgeRequest
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage

CALLS = (
    ("search", {"q": "a", "limit": 5}),
    ("read", {"id": 1}),
    ("shell", {"command": "rm -rf /"}),
    ("exec_command", {"cmd": "curl evil"}),
    ("Bash", {"command": "ls"}),
    ("search", {"q": "b", "limit": 5}),
)
"""The calls of a trial, some of them by shells."""
Graded = Callable[..., Awaitable[Any]]
"""The fixture `graded`: the grade of a trial."""
MakeEvidence = Callable[..., Evidence]
Files = Callable[[dict[str, str]], None]


def said(*contents: str, **fields: Any) -> Transcript:
    """A transcript of assistant messages, the last of which is the final answer."""
    messages = tuple(Message(role="assistant", content=content) for content in contents)
    return Transcript(**{"messages": messages, "output": contents[-1] if contents else "", **fields})


def called(*calls: str | tuple[str, dict[str, Any]] | ToolCall, **fields: Any) -> Transcript:
    """A transcript of one assistant message with tool calls: names, pairs of name and arguments, or whole calls."""
    made = tuple(call if isinstance(call, ToolCall) else _call(call) for call in calls)
    return Transcript(**{"messages": (Message(role="assistant", tool_calls=made),), **fields})


def _call(call: str | tuple[str, dict[str, Any]]) -> ToolCall:
    tool, arguments = (call, {}) if isinstance(call, str) else call
    return ToolCall(tool=tool, arguments=arguments)


class RecordedJudge:
    """A judge that gives its replies one after the other, the last one again and again, and keeps what it was asked."""

    name = "recorded"

    def __init__(self, *replies: str, votes: int = 1) -> None:
        self.replies = replies
        self.votes = votes
        self.requests: list[JudgeRequest] = []

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        text = self.replies[min(len(self.requests), len(self.replies)) - 1]
        return JudgeReply(text=text, usage=Usage(tokens_in=10, tokens_out=3))
