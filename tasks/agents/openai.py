"""passgate's own tool loop over chat completions: `openai:MODEL`."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Self

from passgate.tasks.agents.chat_messages import (
    ChatMessage,
    chat_messages,
    reply_message,
    request_base,
    task_chat,
    tool_message,
)
from passgate.tasks.agents.interface import Agent, AgentSandbox, Attempt
from passgate.tasks.agents.transcripts import excerpt, read_json, read_transcript
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.metering.access import ModelAccess, ModelAnswer
from passgate.tasks.metering.trial_tools import ToolOutcome
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.quotes import quote, raw
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript
from passgate.tasks.providers.apis.chat_completions import ChatCompletions
from passgate.tasks.providers.exchange import ApiFormatError, AskedCall

OWN_KEYS: Final = ("model", "messages", "tools", "stream", "stream_options", "n")
"""What passgate says in a request, and nobody else."""
_API: Final = ChatCompletions()
_CLIENT_ERROR: Final = 400
_ENDS: Final = {
    "budget_exceeded": EndReason.OVER_BUDGET,
    "over_budget": EndReason.OVER_BUDGET,
    "forbidden_call": EndReason.FORBIDDEN_CALL,
}  # What the meter's refusals mean, by their code


class OpenAiAgent(Agent):
    """Asks a model, runs the tools that it calls and tells it what came of them, until it calls none any more."""

    uses_workspace = False

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec

    @classmethod
    def from_spec(cls, spec: AgentSpec, suites_folder: Path) -> Self:
        """Return the agent. Raises `UsageError` without a model, and for a parameter that passgate sets itself."""
        if not spec.target:
            raise UsageError("the agent openai needs a model: openai:MODEL")
        for key in OWN_KEYS:
            if key in spec.completion.parameters:
                raise UsageError(f"completion.parameters.{key}: passgate sets this itself, take it out")
        return cls(spec)

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        """Run the loop. A refusal of the meter ends the turn: the meter knows what it means for the trial."""
        opening = make_opening(self._spec.completion.system, attempt)
        request = request_base(self._spec.target, attempt.tools, attempt.inputs.get("output_schema"))
        turn = _Turn({**self._spec.completion.parameters, **request}, opening.context, access)
        end, detail = await turn.run(seconds)
        return read_transcript(Transcript(messages=(*opening.said, *turn.steps), end=end, detail=detail))


class _Turn:
    """The loop of one turn."""

    def __init__(self, request: Mapping[str, Any], context: Sequence[ChatMessage], access: ModelAccess) -> None:
        self._request = request
        self._messages = [*context]
        self._access = access
        self.steps: list[Message] = []

    async def run(self, seconds: float) -> tuple[EndReason, str]:
        """Run to the end or until the time is up. Return how the turn ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    body = {**self._request, "messages": self._messages}
                    answer = await self._access.complete(json.dumps(body, default=str).encode())
                    if answer.status >= _CLIENT_ERROR:
                        return _refusal(answer)
                    if not await self._step(answer.content):
                        return EndReason.COMPLETED, ""
        return EndReason.TIMED_OUT, ""

    async def _step(self, content: bytes) -> tuple[ToolCall, ...]:
        """Read a reply and make its calls. Raises `MeasurementError` for a reply that cannot be read."""
        try:
            document = read_json(content)
            if not isinstance(document, dict):
                raise ApiFormatError("no JSON object")
            reply = _API.read_reply(document)
        except (ValueError, ApiFormatError) as error:
            what = f"the model's reply cannot be read: {error}: "
            raise MeasurementError(raw(what, quote(excerpt(content), 300))) from error
        calls = tuple(await asyncio.gather(*map(self._call, reply.calls)))
        self.steps.append(Message(role="assistant", content=reply.text, tool_calls=calls))
        self._messages.append(reply_message(document))
        self._messages += [
            tool_message(asked.call_id, call.result) for asked, call in zip(reply.calls, calls, strict=True)
        ]
        return calls

    async def _call(self, asked: AskedCall) -> ToolCall:
        outcome, tools = ToolOutcome(f"there is no tool {asked.tool!r}", is_error=True), self._access.tools
        if tools is not None:
            outcome = await tools.call(*tools.find(asked.tool), asked.arguments)
        arguments = dict(asked.arguments)
        return ToolCall(tool=asked.tool, arguments=arguments, result=outcome.result, is_error=outcome.is_error)


def _refusal(answer: ModelAnswer) -> tuple[EndReason, str]:
    try:
        code = read_json(answer.content)["error"]["code"]
    except (ValueError, LookupError, TypeError):
        code = None
    end = _ENDS.get(code, EndReason.CRASHED) if isinstance(code, str) else EndReason.CRASHED
    return end, f"the model's endpoint answered {answer.status}: {excerpt(answer.content)}"


@dataclass(frozen=True)
class Opening:
    """What is said before the model says anything."""

    said: tuple[Message, ...]
    """What is new in this turn, for the transcript. Of a task's messages what the system and the users say: the rest
    are no steps of this trial.
    """
    context: tuple[ChatMessage, ...]  # What the model is sent: everything that was said, as chat messages


def make_opening(system: str | None, attempt: Attempt) -> Opening:
    """Return the system message, once and first, and what the user says; `system` is the agent's own.

    Raises `MeasurementError` for an image that cannot be sent.
    """
    user = Message(role="user", content=attempt.prompt)
    first = tuple(takewhile(lambda message: message.role == "system", attempt.messages))
    texts = filter(None, [system, attempt.inputs.get("system"), *(message.text for message in first)])
    joined = "\n\n".join(map(str, texts))
    systems = (Message(role="system", content=joined),) if joined else ()
    if not attempt.messages:
        new = (user,) if attempt.history else (*systems, user)
        return Opening(new, tuple(chat_messages([*attempt.history, *new])))
    rest = attempt.messages[len(first) :]
    asked = (*chat_messages(systems), *task_chat(rest, attempt.files))
    if attempt.history:
        return Opening((user,), (*asked, *chat_messages([*attempt.history_since_messages, user])))
    said = [Message(role=told.role, content=told.text) for told in rest if told.role in {"system", "user"}]
    return Opening((*systems, *said), asked)
