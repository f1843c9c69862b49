"""Gemini's `generateContent` and `streamGenerateContent`.

A reply consists of parts. `functionCall` is a call that the agent runs; `executableCode` and `toolCall` are calls that
the provider has run itself, whose results, `codeExecutionResult` and `toolResponse`, are parts of the same reply. Keys
of a request may be written in camel case or with underscores.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final, Self
from urllib.parse import parse_qsl, urlencode

from passgate.tasks.model.price import NO_CHARGES, Charges
from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.interface import (
    Api,
    Context,
    Document,
    IsWithheld,
    Owners,
    ReplyStream,
    raise_error,
    set_keys,
)
from passgate.tasks.providers.exchange import (
    ApiFormatError,
    AskedCall,
    InputMessage,
    ModelReply,
    ModelRequest,
    ToolAnswer,
)
from passgate.tasks.providers.registry import SEGMENT
from passgate.tasks.providers.sse import event_bytes

_STATUSES: Final = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
_FILTERED: Final = frozenset(
    {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "ESCALATION"}
    | {"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "PUP_LIMITED_DISABLED"}
)  # Reasons to end that are neither the model's nor the agent's
_CONFIG: Final = "generationConfig"
_LIMIT: Final = "maxOutputTokens"
_CONTENT: Final = "candidates[0].content"
Calls = dict[str, str]  # Ids of calls and the names of their tools


class Gemini(Api):
    """The `Api` of POST /v1beta/models/NAME:generateContent and :streamGenerateContent."""

    name = "gemini"
    path_pattern = rf"v1(?:alpha|beta)?/(?:models|tunedModels)/(?P<model>{SEGMENT}):(?:g|streamG)enerateContent"
    limits = (_LIMIT,)
    schema_key = "responseJsonSchema"
    texts = ("systemInstruction", "contents", "tools", _CONFIG)

    @property
    def is_streamed(self) -> bool:
        """Whether the path asks for a stream."""
        return self._path.endswith(":streamGenerateContent")

    @property
    def answers_array(self) -> bool:
        """Whether a streamed reply is a JSON array in place of events."""
        return self.is_streamed and ("alt", "sse") not in parse_qsl(self._query)

    def target(self, model: str | None = None) -> str:
        """Return it so that a stream comes as events, however the agent wants it."""
        if not self.answers_array:
            return super().target(model)
        query = [*(one for one in parse_qsl(self._query) if one[0] != "alt"), ("alt", "sse")]
        return f"{super().target(model).partition('?')[0]}?{urlencode(query)}"

    def read_request(self, body: Document) -> ModelRequest:
        config = values.mapping_or_empty(_get(body, _CONFIG), _CONFIG)
        if (values.count_or_none(_get(config, "candidateCount"), f"{_CONFIG}.candidateCount") or 1) > 1:
            raise ApiFormatError("candidateCount: more than one reply cannot be metered; ask for one")
        known = {key: _get(body, key) for key in self.texts}
        known[_LIMIT] = _get(config, _LIMIT)
        return replace(super().read_request(known), stream=self.is_streamed)

    @classmethod
    def for_model(cls, model: str) -> Self:
        return cls(f"v1beta/models/{model}:generateContent")

    def question(
        self, model: str, messages: Sequence[tuple[str, str]], *, schema: Document | None, temperature: float | None
    ) -> Document:
        system = "\n\n".join(text for role, text in messages if role == "system")
        roles = {"user": "user", "assistant": "model"}
        said = [{"role": roles[role], "parts": [{"text": text}]} for role, text in messages if role in roles]
        kind = schema and "application/json"
        config = set_keys(responseMimeType=kind, responseJsonSchema=schema, temperature=temperature)
        instruction = {"parts": [{"text": system}]} if system else None
        return {**set_keys(systemInstruction=instruction, generationConfig=config or None), "contents": said}

    def prepare(self, body: Document, *, model: str | None, max_tokens_out: int | None) -> Document:
        """Return the request with a lower limit; the model stands in its path."""
        key = next((key for key in (_CONFIG, _snake(_CONFIG)) if body.get(key) is not None), _CONFIG)
        config = body.get(key) or {}
        limit = next((name for name in (_LIMIT, _snake(_LIMIT)) if isinstance(config.get(name), int)), None)
        if max_tokens_out is None or limit is None or config[limit] <= max_tokens_out:
            return body
        return {**body, key: {**config, limit: max_tokens_out}}

    def _context(self, body: Document) -> Context:
        said: list[InputMessage] = []
        answers: list[ToolAnswer] = []
        asked: Calls = {}
        if system := _text(body.get("systemInstruction"), "systemInstruction"):
            said.append(InputMessage("system", system))
        for number, given in enumerate(values.sequence(body.get("contents"), "contents")):
            place = f"contents[{number}]"
            content = values.mapping(given, place)
            found = _answers(content, place, asked)
            answers += found
            role = values.text_or_empty(content.get("role"), f"{place}.role")
            if role not in {"", "user", "model", "function", "tool"}:
                raise ApiFormatError(f"{place}.role: {role!r} is none of the roles of contents")
            text = _text(content, place)
            if role != "model" and (text or not found):
                said.append(InputMessage("user", text))
        return tuple(said), tuple(answers)

    def read_reply(self, body: Document) -> ModelReply:
        _raise_blocked(body)
        candidate = _candidate(body)
        parts = _parts(candidate.get("content"), _CONTENT)
        return ModelReply(
            text=values.clean("".join(map(_shown, parts))),
            calls=tuple(call for call, _ in _owners(parts) if call),
            usage=_usage(body.get("usageMetadata")),
            model=values.clean(values.text_or_empty(body.get("modelVersion"), "modelVersion")),
            charges=_charges(body, candidate, NO_CHARGES),
        )

    def remove_calls(self, body: Document, call_ids: Collection[str]) -> Document:
        candidate = _candidate(body)
        parts = _parts(candidate.get("content"), _CONTENT)
        kept = [part for part, (_, owner) in zip(parts, _owners(parts), strict=True) if owner not in call_ids]
        return body if len(kept) == len(parts) else _replace_parts(body, kept)

    def stream(self, body: Document, is_withheld: IsWithheld) -> ReplyStream:
        return _ContentStream(is_withheld, model=self.path_model)

    def error_body(self, status: int, code: str, message: str) -> Document:
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code, "domain": "passgate"}]
        kind = _STATUSES.get(status, "INTERNAL")
        return {"error": {"code": status, "message": message, "status": kind, "details": details}}


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _get(fields: Document, name: str) -> Any:
    """Return a field by its name in camel case or with underscores."""
    value = fields.get(name)
    return fields.get(_snake(name)) if value is None else value


def _parts(content: Any, place: str) -> list[Document]:
    """Return the parts of a content, which may be left out."""
    fields = values.mapping_or_empty(content, place)
    given = values.sequence_or_empty(fields.get("parts"), f"{place}.parts")
    return [values.mapping(part, f"{place}.parts[{number}]") for number, part in enumerate(given)]


def _shown(part: Document) -> str:
    """Return what a part says; thoughts are not said."""
    return "" if part.get("thought") else values.text_or_empty(part.get("text"), "parts[].text")


def _text(content: Any, place: str) -> str:
    """Return the text of a content that is sent to a model, its files as `[image]` and the like."""
    given = {"parts": [{"text": content}]} if isinstance(content, str) else content
    pieces = []
    for part in _parts(given, place):
        file = _get(part, "inlineData") or _get(part, "fileData")
        if file is not None:
            kind = _get(values.mapping(file, f"{place}.parts[]"), "mimeType")
            pieces.append("[image]" if isinstance(kind, str) and kind.startswith("image/") else "[file]")
        elif isinstance(part.get("text"), str):
            pieces.append(part["text"])
    return "\n".join(pieces)


def _answers(content: Document, place: str, asked: Calls) -> list[ToolAnswer]:
    """Return the results of calls that a content holds. `asked` are the calls before it that have none; those of the
    content are added. A result without an id is that of the first of them with its name.
    """
    found, seen = [], Counter[str]()
    for part in _parts(content, place):
        if (call := _get(part, "functionCall")) is not None:
            fields = values.mapping(call, f"{place}.functionCall")
            identity = _call_id(fields, seen, f"{place}.functionCall")
            asked[identity] = values.text(fields.get("name"), f"{place}.functionCall.name")
        if (given := _get(part, "functionResponse")) is not None:
            fields = values.mapping(given, f"{place}.functionResponse")
            identity = _call_id(fields, Counter(), f"{place}.functionResponse")
            if fields.get("id") is None:
                identity = next((one for one, name in asked.items() if name == identity), identity)
            asked.pop(identity, None)
            response = values.mapping_or_empty(fields.get("response"), f"{place}.functionResponse.response")
            is_error = True if "error" in response else False if "output" in response else None
            result = response["output"] if response.keys() == {"output"} else response
            found.append(ToolAnswer(identity, result, is_error))
    return found


def _call_id(fields: Document, seen: Counter[str], place: str) -> str:
    """Return the id of a call or of its result; without one the name, numbered from the second of a name on."""
    name = values.text(fields.get("name"), f"{place}.name")
    if identity := values.text_or_empty(fields.get("id"), f"{place}.id"):
        return identity
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}#{seen[name]}"


def _owners(parts: list[Document]) -> list[tuple[AskedCall | None, str]]:
    """Return for each part of a whole reply the call that it is, and the id of the call that it belongs to."""
    seen = Counter[str]()
    return [_call(part, seen) for part in parts]


def _call(part: Document, seen: Counter[str]) -> tuple[AskedCall | None, str]:
    """Return the call that a part is, and the id of the call that it is or is the result of. `seen` counts the calls
    before it.
    """
    if (asked := part.get("functionCall")) is not None:
        fields = values.mapping(asked, "functionCall")
        identity = _call_id(fields, seen, "functionCall")
        tool = values.clean(values.text(fields.get("name"), "functionCall.name"))
        return AskedCall(identity, tool, values.parse_arguments(fields.get("args"))), identity
    if (code := part.get("executableCode")) is not None:
        seen["executableCode"] += 1
        identity = f"code_execution#{seen['executableCode']}"
        return AskedCall(
            identity, "code_execution", values.parse_arguments(values.mapping(code, "executableCode"))
        ), identity
    if part.get("codeExecutionResult") is not None:
        return None, f"code_execution#{seen['executableCode']}"
    for key in ("toolCall", "toolResponse"):
        if part.get(key) is not None:
            fields = values.mapping(part[key], key)
            tool = values.text_or_empty(fields.get("toolType"), f"{key}.toolType").lower() or "tool"
            identity = values.text_or_empty(fields.get("id"), f"{key}.id") or tool
            arguments = values.parse_arguments(fields.get("args"))
            return (AskedCall(identity, values.clean(tool), arguments) if key == "toolCall" else None), identity
    return None, ""


def _candidate(body: Document) -> Document:
    candidates = values.sequence(body.get("candidates"), "candidates")
    if len(candidates) != 1:
        raise ApiFormatError(f"candidates: there are {len(candidates)} where one is asked for")
    return values.mapping(candidates[0], "candidates[0]")


def _raise_blocked(body: Document) -> None:
    """Raise the error of a reply or an event, or that a filter stopped the prompt or the reply."""
    raise_error(body)
    feedback = values.mapping_or_empty(body.get("promptFeedback"), "promptFeedback")
    blocked = feedback.get("blockReason")
    for candidate in values.sequence_or_empty(body.get("candidates"), "candidates"):
        reason = candidate.get("finishReason") if isinstance(candidate, dict) else None
        blocked = blocked or (reason if isinstance(reason, str) and reason in _FILTERED else None)
    if blocked:
        message = f"the content filter stopped it: {blocked}"
        raise values.provider_error({"code": "content_filter", "reason": blocked, "message": message})


def _usage(given: Any) -> Usage:
    """Return the usage of a reply. What is 0 is left out of it; thoughts are counted beside the other output."""
    fields = values.mapping_or_empty(given, "usageMetadata")
    prompt, used, cached, written, thought = (
        values.count_or_none(fields.get(key), f"usageMetadata.{key}")
        for key in (
            *("promptTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount"),
            *("candidatesTokenCount", "thoughtsTokenCount"),
        )
    )
    if prompt is None:
        return Usage()
    return Usage(tokens_in=prompt + (used or 0), tokens_cached=cached or 0, tokens_out=(written or 0) + (thought or 0))


def _charges(body: Document, candidate: Document, before: Charges) -> Charges:
    """Return what is charged beside the tokens, in a reply or with one more of its chunks."""
    usage = body.get("usageMetadata")
    tier = values.string_or_empty(usage.get("serviceTier")).lower() if isinstance(usage, dict) else ""
    given = candidate.get("groundingMetadata")
    grounds = given if isinstance(given, dict) else {}
    queries, chunks = (
        found if isinstance(found := grounds.get(key), list) else [] for key in ("webSearchQueries", "groundingChunks")
    )
    is_mapped = any(isinstance(chunk, dict) and "maps" in chunk for chunk in chunks)
    counts = {"google_search": len(queries), "google_maps": int(is_mapped)}
    return Charges(tier or before.tier, tools={name: max(n, before.tools.get(name, 0)) for name, n in counts.items()})


def _replace_parts(body: Document, parts: list[Document]) -> Document:
    candidate = body["candidates"][0]
    content = {**candidate["content"], "parts": parts or [{"text": ""}]}
    return {**body, "candidates": [{**candidate, "content": content}]}


class _ContentStream(ReplyStream):
    """A reply from its chunks. Every call is whole in one of them."""

    def __init__(self, is_withheld: IsWithheld, *, model: str) -> None:
        super().__init__(is_withheld)
        self._asked_model = model
        self._seen: Counter[str] = Counter()
        self._refused: set[str] = set()
        self._used = Usage()

    def _take(self, event: Document) -> Owners:
        _raise_blocked(event)
        self._model = values.text_or_empty(event.get("modelVersion"), "modelVersion") or self._model
        candidate: Document = {}
        if values.sequence_or_empty(event.get("candidates"), "candidates"):
            candidate = _candidate(event)
        parts = _parts(candidate.get("content"), _CONTENT)
        taken_out = []
        for position, part in enumerate(parts):
            call, owner = _call(part, self._seen)
            if call is not None:
                self.started = True
                if self._decide(call):
                    self._refused.add(owner)
            if owner in self._refused:
                taken_out.append(position)
            if part.get("thought"):
                self._write(values.text_or_empty(part.get("text"), "parts[].text"))
            else:
                self._say(_shown(part))
        self.ended = self.ended or candidate.get("finishReason") is not None
        self._charges = _charges(event, candidate, self._charges)
        if event.get("usageMetadata") is not None:
            self._used = _usage(event["usageMetadata"])
        # What was written so far is no account of what will have been written.
        self._usage = self._used if self.ended else self._used.model_copy(update={"tokens_out": None})
        return tuple(taken_out)

    def _finish(self) -> None:
        """Nothing: only a reason to end says that the reply is complete."""

    def _remaining(self, event: Document, owners: Owners) -> Document | None:
        if not owners:
            return event
        parts = event["candidates"][0]["content"]["parts"]
        return _replace_parts(event, [part for position, part in enumerate(parts) if position not in owners])

    def _ending(self) -> list[bytes]:
        if self.ended:
            return []
        content = {"role": "model", "parts": [{"text": ""}]}
        last = {"candidates": [{"content": content, "finishReason": "MAX_TOKENS", "index": 0}]}
        return [event_bytes({**last, "modelVersion": self._model or self._asked_model})]
