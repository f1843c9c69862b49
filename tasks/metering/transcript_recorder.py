"""The transcript of a trial, written down call by call as the meter sees them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage, is_same_tool, total_usage
from passgate.tasks.providers.exchange import ModelReply, ModelRequest, ToolAnswer

_MEASURED = {"usage", "latency_ms", "time_to_first_token", "model"}
"""What the meter knows of a step better than the agent."""
_NOT_MADE: Final = "the agent did not call this tool"


@dataclass(slots=True)
class _RecordedCall:
    call: ToolCall
    answered_at: float
    alone: bool
    has_result: bool = False
    is_known: bool = False  # Whether passgate ran the call itself, or knows that nobody did

    def returned(self, answer: ToolAnswer, at: float) -> None:
        # Of calls that ran side by side only their common end is known.
        duration = max(0.0, at - self.answered_at) * 1000 if self.alone else None
        told = {"result": answer.result, "is_error": answer.is_error, "duration_ms": duration}
        self.call = ToolCall.model_validate({**dict(self.call), **told})
        self.has_result = True


class TranscriptRecorder:
    """Takes down each call once, although every request repeats the whole conversation before it.

    A system or user message is new when the context holds it more often than any context before; the n-th result
    for a call's id belongs to the n-th call of this id. Messages of the model that a context brings along without
    having come from it in this trial, such as examples, are not steps and left out.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[Message, list[_RecordedCall]]] = []
        self._said: Counter[tuple[str, str]] = Counter()
        self._calls: defaultdict[str, list[_RecordedCall]] = defaultdict(list)
        self._beside: list[Usage] = []
        self._made: list[tuple[str, ToolCall]] = []
        """Calls that passgate ran, by the ids that the model gave them, until the reply is taken down."""

    def ask(self, request: ModelRequest, at: float) -> None:
        """Take down what a request brings that is new; `at` is its time in seconds, of any clock."""
        # Instructions are repeated also where the provider keeps the rest of the conversation.
        kept = {key: count for key, count in self._said.items() if request.continues and key[0] == "user"}
        before = Counter(kept)
        for said in request.said:
            key = (said.role, said.text)
            before[key] += 1
            if before[key] > self._said[key]:
                self._said[key] += 1
                self._entries.append((Message(role=said.role, content=said.text), []))
        heard: Counter[str] = Counter()
        for answer in request.answers:
            calls = self._calls[answer.call_id]
            position = heard[answer.call_id]
            heard[answer.call_id] += 1
            if request.continues:
                position = next((n for n, call in enumerate(calls) if not call.has_result), len(calls))
            if position < len(calls) and not calls[position].has_result:
                calls[position].returned(answer, at)

    def answer(
        self,
        reply: ModelReply,
        usage: Usage,
        *,
        asked_at: float,
        answered_at: float,
        first_token_at: float | None,
        refused: frozenset[int] = frozenset(),
    ) -> None:
        """Take down a reply; `refused` are the positions of its calls that the agent never saw."""
        step = Message(
            role="assistant",
            content=reply.text,
            usage=usage,
            latency_ms=(answered_at - asked_at) * 1000,
            time_to_first_token=None if first_token_at is None else first_token_at - asked_at,
            model=reply.model,
        )
        calls = []
        for position, asked in enumerate(reply.calls):
            # A refused call has no result that could be an error; of others the next request tells.
            is_refused = position in refused
            is_error = False if is_refused else None
            call = ToolCall(tool=asked.tool, arguments=dict(asked.arguments), is_error=is_error, refused=is_refused)
            calls.append(_RecordedCall(call, answered_at, alone=len(reply.calls) == 1))
            if not is_refused:
                self._calls[asked.call_id].append(calls[-1])
        self._entries.append((step, calls))

    def use(self, usage: Usage) -> None:
        """Take down what a call used that is no step, such as one for embeddings."""
        self._beside.append(usage)

    def record_call(self, call: ToolCall, call_id: str | None) -> None:
        """Record a call that passgate ran, with its result. The model asked for it by this id; by `None`, no model did.

        A call that no model asked for belongs to the step before it.
        """
        if call_id is not None:
            self._made.append((call_id, call))
            return
        if not any(message.role == "assistant" for message, _ in self._entries):
            self._entries.append((Message(role="assistant", content=""), []))
        calls = next(calls for message, calls in reversed(self._entries) if message.role == "assistant")
        calls.append(_RecordedCall(call, 0.0, alone=False, has_result=True, is_known=True))

    def _settle_calls(self, not_made: Iterable[str]) -> None:
        """Put what passgate knows of calls in the place of what the agent told the model about them."""
        made, self._made = self._made, []
        for call_id, call in made:
            recorded = next((one for one in self._calls[call_id] if not one.is_known), None)
            if recorded is None:
                self.record_call(call, None)
            else:
                # The model's name for the tool stays where it says more: clients put a server before it.
                name = recorded.call.tool if is_same_tool(call.tool, recorded.call.tool) else call.tool
                recorded.call = call.model_copy(update={"tool": name})
                recorded.has_result = recorded.is_known = True
        for call_id in not_made:
            recorded = next((one for one in self._calls[call_id] if not one.is_known), None)
            if recorded is None:
                continue
            recorded.is_known = True
            if recorded.has_result:
                update = {"result": _NOT_MADE, "is_error": True, "duration_ms": None}
                recorded.call = recorded.call.model_copy(update=update)

    @property
    def known_calls(self) -> frozenset[int]:
        """The positions of the calls in the transcript of which passgate knows what came of them."""
        calls = [recorded for _, calls in self._entries for recorded in calls]
        return frozenset(position for position, recorded in enumerate(calls) if recorded.is_known)

    def transcript(self, not_made: Iterable[str] = ()) -> Transcript:
        """Return everything so far. Its output is what the model said last. `not_made` are ids of calls that the model
        asked for and that did not reach the tool.
        """
        self._settle_calls(not_made)
        messages = tuple(
            message.model_copy(update={"tool_calls": tuple(recorded.call for recorded in calls)})
            for message, calls in self._entries
        )
        seen = Transcript(messages=messages)
        # Where the steps are not all that was used, the sum has to be said.
        whole = total_usage([*self._beside, *(step.usage for step in seen.steps)]) if self._beside else Usage()
        return seen.model_copy(update={"output": seen.last_words, "usage": whole})


def completed(
    seen: Transcript,
    reported: Transcript,
    known_calls: Collection[int] = (),
    serves: Callable[[str], bool] = lambda tool: False,
) -> Transcript:
    """Return what the meter saw, with the agent's own answer and end.

    Results of tools are the agent's where it reports the same calls: only it knows what failed and how long it took.
    Not those of `known_calls`, the positions of the calls that passgate ran itself. An agent that reports every call
    that was seen and others between them, such as one that finds its tools in the text of the model, knows the
    conversation better than the meter does, unless the others are of tools that passgate `serves`.
    """
    known = [call if position in known_calls else None for position, call in enumerate(seen.tool_calls)]
    places = _places(reported, seen, serves)
    if places is not None:
        served = {place: call for place, call in zip(places, known, strict=True) if call is not None}
        told = [served.get(place, call) for place, call in enumerate(reported.tool_calls)]
        whole = reported.model_copy(update={"messages": replace_calls(reported.messages, told)})
        return _add_metered_usage(whole, seen)
    update: dict[str, Any] = {
        "output": reported.output or seen.output,
        "end": reported.end,
        "detail": reported.detail,
        "printed": reported.printed,
    }
    update["messages"] = _add_player_usage(seen.messages, reported.messages)
    made = [call for call in seen.tool_calls if not call.refused]
    if [_identity(call) for call in made] == [_identity(call) for call in reported.tool_calls]:
        rest = iter(reported.tool_calls)
        told = [call if call.refused else next(rest) for call in seen.tool_calls]
        calls = [other if call is None else call for call, other in zip(known, told, strict=True)]
        update["messages"] = replace_calls(update["messages"], calls)
    return seen.model_copy(update=update)


def _places(reported: Transcript, seen: Transcript, serves: Callable[[str], bool]) -> list[int] | None:
    """Return where an agent that knows more than the meter reports each call that was seen; `None` if it does not."""
    told = [_identity(call) for call in reported.tool_calls]
    if not reported.complete or len(told) <= len(seen.tool_calls) or any(call.refused for call in seen.tool_calls):
        return None
    rest, places = iter(enumerate(told)), []
    for call in seen.tool_calls:
        place = next((place for place, identity in rest if identity == _identity(call)), None)
        if place is None:
            return None
        places.append(place)
    others = (call.tool for place, call in enumerate(reported.tool_calls) if place not in places)
    return None if any(map(serves, others)) else places


def replace_calls(messages: Iterable[Message], calls: Iterable[ToolCall]) -> tuple[Message, ...]:
    """Return the messages with these calls in the place of theirs, in order."""
    rest = iter(calls)
    return tuple(
        message.model_copy(update={"tool_calls": tuple(next(rest) for _ in message.tool_calls)}) for message in messages
    )


def rename_calls(transcript: Transcript, name: Callable[[str], str]) -> Transcript:
    """Return the transcript with the names that `name` has for its tools."""
    calls = (call.model_copy(update={"tool": name(call.tool)}) for call in transcript.tool_calls)
    return transcript.model_copy(update={"messages": replace_calls(transcript.messages, calls)})


def _add_metered_usage(reported: Transcript, seen: Transcript) -> Transcript:
    """Return the agent's conversation with the meter's figures: by step if both have the same steps, else in sum."""
    messages = reported.messages
    if len(seen.steps) == len(reported.steps):
        figures = iter([step.model_dump(include=_MEASURED) for step in seen.steps])
        messages = tuple(
            Message.model_validate(dict(message) | next(figures)) if message.role == "assistant" else message
            for message in messages
        )
    return reported.model_copy(update={"messages": messages, "usage": seen.whole_usage})


def _add_player_usage(seen: tuple[Message, ...], reported: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages with the usage of the model that plays the user, which the meter does not see."""
    played = [message for message in reported if message.role == "user" and message.usage != Usage()]
    messages = []
    for message in seen:
        if played and message.role == "user" and message.content == played[0].content:
            player = played.pop(0)
            messages.append(message.model_copy(update={"usage": player.usage, "model": player.model}))
        else:
            messages.append(message)
    return tuple(messages)


def _identity(call: ToolCall) -> tuple[str, dict[str, Any]]:
    return call.tool, call.arguments
