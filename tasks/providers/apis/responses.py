"""OpenAI's responses.

Output items whose type ends in `_call` are calls: those that the agent runs (`function_call`, `custom_tool_call`,
`local_shell_call`, `shell_call`, `apply_patch_call`, `computer_call`) and those that the provider has run itself
(`web_search_call`, `file_search_call`, `code_interpreter_call`, `image_generation_call`, `mcp_call`). So are `program`,
and `mcp_approval_request`, whose `mcp_call` is not another one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from passgate.tasks.model.price import Charges
from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.interface import (
    Api,
    Context,
    Document,
    IsWithheld,
    Owners,
    ReplyStream,
    openai_usage,
    raise_error,
    set_keys,
)
from passgate.tasks.providers.exchange import ApiFormatError, AskedCall, InputMessage, ModelReply, ToolAnswer
from passgate.tasks.providers.sse import event_bytes

_CALL = "_call"
_OTHER_CALLS = {"program": "program", "mcp_approval_request": "mcp"}
_GIVEN_AS = ("action", "operation")
_GIVEN_AMONG = ("actions", "queries", "code", "container_id")
_RESULTS = ("output", "result", "tools", "error")
_TEXT_ANSWERS = frozenset({"function_call_output", "custom_tool_call_output", "computer_call_output"})
_ANSWERS = ("_call_output", "tool_search_output", "program_output")

_CHARGED = frozenset({"web_search_call", "file_search_call", "image_generation_call"})
"""Of each use; of code that runs the container is charged."""
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})
_SPOKEN = frozenset({"response.output_text.delta", "response.refusal.delta"})


class Responses(Api):
    """The `Api` of POST /responses."""

    name = "responses"
    path_pattern = "responses"
    limits = ("max_output_tokens",)
    texts = ("instructions", "input", "tools", "text", "prompt")
    schema_key = "text.format"
    earlier = ("previous_response_id", "conversation")

    def _context(self, body: Document) -> Context:
        if values.truth_or_false(body.get("background"), "background"):
            raise ApiFormatError("background: a reply that is fetched later cannot be metered; ask for it at once")
        given = body.get("input")
        # A text is short for one message of the user.
        listed = [{"role": "user", "content": given}] if isinstance(given, str) else given
        items = [
            (values.mapping(item, f"input[{n}]"), f"input[{n}]")
            for n, item in enumerate(values.sequence_or_empty(listed, "input"))
        ]
        said = [_said(item, place) for item, place in items if values.block_type(item) in {"", "message"}]
        instructions = values.content_text(body.get("instructions"), "instructions")
        if instructions:
            said.insert(0, InputMessage("system", instructions))
        answers = [_tool_answer(item, place) for item, place in items if _is_answer(item)]
        return tuple(one for one in said if one is not None), tuple(answers)

    def question(
        self, model: str, messages: Sequence[tuple[str, str]], *, schema: Document | None, temperature: float | None
    ) -> Document:
        form = schema and {"format": {"type": "json_schema", "name": "reply", "strict": True, "schema": schema}}
        said = [{"role": role, "content": text} for role, text in messages]
        return {"model": model, "store": False, **set_keys(text=form, temperature=temperature), "input": said}

    def read_reply(self, body: Document) -> ModelReply:
        _raise_error(body)
        values.sequence(body.get("output"), "output")
        return _read_reply(body)

    def remove_calls(self, body: Document, call_ids: Collection[str]) -> Document:
        items = _output_items(body)
        kept = _without(items, call_ids)
        return body if len(kept) == len(items) else {**body, "output": kept}

    def stream(self, body: Document, is_withheld: IsWithheld) -> ReplyStream:
        return _ResponseStream(is_withheld, model=values.text_or_empty(body.get("model"), "model"))

    def error_event(self, code: str, message: str) -> bytes:
        # What is documented as keys of the event comes as its `error` too, which client libraries raise.
        stated = {"code": code, "message": message, "param": None, "sequence_number": 0}
        return event_bytes({"type": "error", **stated, **self.error_body(500, code, message)}, "error")


def _raise_error(response: Document) -> None:
    details = response.get("incomplete_details")
    stopped = details.get("reason") if isinstance(details, dict) else None
    raise_error(response, reason=stopped or response.get("status"))


def _said(item: Document, place: str) -> InputMessage | None:
    match values.text_or_empty(item.get("role"), f"{place}.role"):
        case "system" | "developer":
            return InputMessage("system", values.content_text(item.get("content"), f"{place}.content"))
        case "user":
            return InputMessage("user", values.content_text(item.get("content"), f"{place}.content"))
        case "assistant" | "":
            return None
        case role:
            raise ApiFormatError(f"{place}.role: {role!r} is none of the roles of responses")


def _is_call(item: Document) -> bool:
    """Return whether an item is a call that was not asked for before."""
    kind = values.block_type(item)
    if kind == "mcp_call":
        return item.get("approval_request_id") is None
    return kind.endswith(_CALL) or kind in _OTHER_CALLS


def _is_answer(item: Document) -> bool:
    """Return whether an item is the result of a call."""
    kind = values.block_type(item)
    return kind.endswith(_ANSWERS) or (kind == "mcp_call" and (_has(item, "output") or _has(item, "error")))


def _has(item: Document, key: str) -> bool:
    return item.get(key) is not None


def _call_id(item: Document, position: int) -> str:
    """Return the call that an item is, or is the result of; one without an id goes by its position in the output."""
    for key in ("approval_request_id", "call_id", "id"):
        if isinstance(item.get(key), str) and item[key]:
            return str(item[key])
    return f"output[{position}]"


def _asked_call(item: Document, position: int) -> AskedCall:
    """Return an item as a call."""
    place = f"output[{position}]"
    kind = values.block_type(item)
    name = values.text_or_empty(item.get("name"), f"{place}.name")
    namespace = values.text_or_empty(item.get("namespace"), f"{place}.namespace")
    return AskedCall(
        call_id=_call_id(item, position),
        tool=values.clean(
            f"{namespace}__{name}" if namespace and name else name or _OTHER_CALLS.get(kind) or kind.removesuffix(_CALL)
        ),
        arguments=_arguments(item, place),
    )


def _arguments(item: Document, place: str) -> Mapping[str, Any]:
    if values.block_type(item) == "custom_tool_call":
        return {"input": values.clean(values.text_or_empty(item.get("input"), f"{place}.input"))}
    if _has(item, "arguments"):
        return values.parse_arguments(item["arguments"])
    whole = next((item[key] for key in _GIVEN_AS if isinstance(item.get(key), dict)), None)
    return values.parse_arguments(whole or {key: item[key] for key in _GIVEN_AMONG if _has(item, key)})


def _tool_answer(item: Document, place: str) -> ToolAnswer:
    """Return an item as a result: the text of what the agent ran, of other tools what they gave."""
    kind = values.block_type(item)
    result = next((item[key] for key in _RESULTS if _has(item, key)), None)
    if kind in _TEXT_ANSWERS:
        result = values.content_text([result] if isinstance(result, dict) else result, f"{place}.output")
    is_error = None
    if kind == "mcp_call":
        is_error = _has(item, "error")
    elif kind == "apply_patch_call_output":
        is_error = item.get("status") == "failed"
    return ToolAnswer(_call_id(item, 0), result, is_error)


def _without(output: list[Document], call_ids: Collection[str]) -> list[Document]:
    """Return the items without these calls and what came of them."""
    return [
        item
        for position, item in enumerate(output)
        if not ((_is_call(item) or _is_answer(item)) and _call_id(item, position) in call_ids)
    ]


def _output_items(response: Document) -> list[Document]:
    """Return the output items of a response. Raises `ApiFormatError`."""
    output = values.sequence_or_empty(response.get("output"), "output")
    return [values.mapping(item, f"output[{position}]") for position, item in enumerate(output)]


def _read_reply(response: Document) -> ModelReply:
    """Return what a whole response answers. Raises `ApiFormatError`."""
    items = _output_items(response)
    said = [
        values.reply_text(item.get("content"), f"output[{position}].content")
        for position, item in enumerate(items)
        if values.block_type(item) == "message"
    ]
    return ModelReply(
        text=values.clean("".join(said)),
        calls=tuple(_asked_call(item, position) for position, item in enumerate(items) if _is_call(item)),
        usage=openai_usage(response.get("usage"), tokens_in="input_tokens", tokens_out="output_tokens"),
        model=values.clean(values.text_or_empty(response.get("model"), "model")),
        charges=Charges(tier=values.string_or_empty(response.get("service_tier")), tools=_tool_uses(items)),
    )


def _tool_uses(items: list[Document]) -> Counter[str]:
    """Count the uses of tools that the provider charges for."""
    uses = Counter(values.block_type(item).removesuffix(_CALL) for item in items if values.block_type(item) in _CHARGED)
    containers = {str(item.get("container_id")) for item in items if values.block_type(item) == "code_interpreter_call"}
    uses["code_interpreter"] += len(containers)
    return uses


Decision = tuple[AskedCall, bool]  # A call, and whether it is taken out


@dataclass(slots=True)
class _Part:
    is_refusal: bool
    pieces: list[str] = field(default_factory=list)

    def finished(self) -> tuple[str, Document, Document]:
        """Return the event that ends it, with its text, and the part itself."""
        text = "".join(self.pieces)
        if self.is_refusal:
            return "response.refusal.done", {"refusal": text}, {"type": "refusal", "refusal": text}
        whole = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return "response.output_text.done", {"text": text, "logprobs": []}, whole


class _ResponseStream(ReplyStream):
    """A response from its events. A call is whole when its item is done."""

    _open_calls: dict[int, str]
    """Their ids."""

    def __init__(self, is_withheld: IsWithheld, *, model: str) -> None:
        super().__init__(is_withheld)
        self._asked_model = model
        self._decided: list[Decision] = []
        self._refused: set[str] = set()
        self._kept: list[Document] | None = None  # The output of the last event where calls are taken out of it
        self._response: Document | None = None
        self._sequence_number = -1
        self._open: dict[int, Document] = {}
        """The items that the agent gets, by the index that the provider gives them; what is done is in `_done`."""
        self._done: dict[int, Document] = {}
        self._parts: dict[tuple[int, int], _Part] = {}

    def _take(self, event: Document) -> Owners:
        kind = values.text_or_empty(event.get("type"), "type")
        if isinstance(event.get("sequence_number"), int):
            self._sequence_number = event["sequence_number"]
        if kind in _SPOKEN:
            self._take_text(event)
        elif kind.endswith(".delta"):
            self._write(values.text_or_empty(event.get("delta"), "delta"))
        elif kind in {"response.output_item.added", "response.output_item.done"}:
            self._take_item(event, is_done=kind.endswith(".done"))
        elif kind in _LAST:
            response = values.mapping(event.get("response"), "response")
            _raise_error(response)
            self._end(response)
        elif kind == "response.created":
            self._response = values.mapping(event.get("response"), "response")
            self._model = values.text_or_empty(self._response.get("model"), "response.model")
        else:
            raise_error(event)
        return ()

    def _take_text(self, event: Document) -> None:
        piece = values.text(event.get("delta"), "delta")
        self._say(piece)
        index = values.count_or_none(event.get("output_index"), "output_index")
        content_index = values.count_or_none(event.get("content_index"), "content_index")
        if index is not None:
            part = self._parts.setdefault((index, content_index or 0), _Part(event["type"] == "response.refusal.delta"))
            part.pieces.append(piece)

    def _take_item(self, event: Document, *, is_done: bool) -> None:
        item = values.mapping_or_empty(event.get("item"), "item")
        if event.get("output_index") is None and not _is_call(item):
            return
        index = values.count(event.get("output_index"), "output_index")
        if _is_call(item):
            self._take_call(item, index, is_done=is_done)
        elif _is_answer(item) and _call_id(item, index) in self._refused:
            self._gaps.add(index)
        elif is_done:
            self._keep(item, index)
        else:
            self._open[index] = item

    def _take_call(self, item: Document, index: int, *, is_done: bool) -> None:
        self.started = True
        if not is_done:
            self._open_calls[index] = _call_id(item, index)
            return
        self._open_calls.pop(index, None)
        if self._refuses(_asked_call(item, index)):
            self._gaps.add(index)
        else:
            self._keep(item, index)

    def _keep(self, item: Document, index: int) -> None:
        self._open.pop(index, None)
        self._done[index] = item

    def _refuses(self, call: AskedCall) -> bool:
        refused = self._decide(call)
        self._decided.append((call, refused))
        if refused:
            self._refused.add(call.call_id)
        return refused

    def _end(self, response: Document) -> None:
        """Handle the last event, which repeats the whole output. Ask about calls that only it has."""
        final = _read_reply(response)
        refused = self._refused_ids(final.calls)
        if refused:
            self._kept = _without(_output_items(response), refused)
        allowed = {call.call_id for call in final.calls} - refused
        self._gaps.update(index for index, identity in self._open_calls.items() if identity not in allowed)
        self._open_calls.clear()
        if final.text:
            self._pieces = [final.text]
        self.started = self.started or bool(final.text or final.calls)
        self._usage = final.usage
        self._charges = final.charges
        self._model = final.model or self._model
        self.ended = True

    def _refused_ids(self, calls: Iterable[AskedCall]) -> set[str]:
        earlier = list(self._decided)
        refused = set()
        for call in calls:
            known = _find(call, earlier)
            if known is not None:
                earlier.remove(known)
            if self._refuses(call) if known is None else known[1]:
                refused.add(call.call_id)
        return refused

    def _finish(self) -> None:
        """Nothing: only the last event says that the reply is complete."""

    def _remaining(self, event: Document, owners: Owners) -> Document | None:
        if self._kept is not None and event.get("type") in _LAST:
            return {**event, "response": {**event["response"], "output": self._kept}}
        if not self._gaps or not isinstance(event.get("output_index"), int):
            return event
        return self._renumbered(event, "output_index")

    def _ending(self) -> list[bytes]:
        if self.ended:
            return []
        events: list[Document] = []
        if self._response is None:
            self._response = _beginning(self._asked_model)
            events.append({"type": "response.created", "response": self._response})
        for index in sorted(self._open):
            events += self._closing(index)
        incomplete = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        output = [self._done[index] for index in sorted(self._done)]
        events.append({"type": "response.incomplete", "response": {**self._response, **incomplete, "output": output}})
        first = self._sequence_number + 1
        return [event_bytes({**event, "sequence_number": first + n}, event["type"]) for n, event in enumerate(events)]

    def _closing(self, index: int) -> list[Document]:
        """Return the events that end an item here."""
        item, counted = self._open[index], self._counted(index)
        place: Document = {"item_id": item.get("id"), "output_index": counted}
        events, content = [], []
        for _, content_index in sorted(place for place in self._parts if place[0] == index):
            kind, text, part = self._parts[index, content_index].finished()
            inner = {**place, "content_index": content_index}
            events += [{"type": kind, **inner, **text}, {"type": "response.content_part.done", **inner, "part": part}]
            content.append(part)
        whole = {**item, "status": "incomplete"}
        if content:
            whole["content"] = content
        self._done[index] = whole
        return [*events, {"type": "response.output_item.done", "output_index": counted, "item": whole}]


def _beginning(model: str) -> Document:
    fields = {"id": "resp_cut_off", "object": "response", "created_at": 0, "status": "in_progress", "model": model}
    return {**fields, "output": [], "tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "error": None}


def _find(call: AskedCall, decided: list[Decision]) -> Decision | None:
    """Return what was decided on a call. Some servers give it another id in the last event than before."""
    same_id = (one for one in decided if one[0].call_id == call.call_id)
    alike = (one for one in decided if (one[0].tool, one[0].arguments) == (call.tool, call.arguments))
    return next(same_id, None) or next(alike, None)
