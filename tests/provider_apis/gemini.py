"""Gemini's generateContent: requests, replies and streams from as little as a test wants to say, and their reader."""

from collections.abc import Iterator
from typing import Any

from passgate.tasks.providers.apis.gemini import Gemini
from passgate.tasks.providers.exchange import AskedCall
from passgate.tasks.providers.registry import PROVIDERS
from tests.provider_streams import Json, documents
from tests.upstream_shapes import Answer, Text, event

PATH = "v1beta/models/gemini-x:generateContent"
STREAM = PATH.replace(":g", ":streamG")


def api_at(path: str = PATH, query: str = "") -> Gemini:
    found = PROVIDERS["gemini"].find_api(path, query)
    assert isinstance(found, Gemini)
    return found


def request(*parts: Json, **fields: Any) -> Json:
    return {"contents": [{"role": "user", "parts": list(parts) or [{"text": "Hello"}]}], **fields}


def reply(*parts: Json, reason: str | None = "STOP", **fields: Any) -> Json:
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": reason, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 7,
            "totalTokenCount": 24,
            "toolUsePromptTokenCount": 2,
            "cachedContentTokenCount": 4,
        },
        "modelVersion": "gemini-x-001",
        **fields,
    }


def call(name: str, call_id: str | None = None, /, **given: Any) -> Json:
    return {"functionCall": {"name": name, "args": given} | ({} if call_id is None else {"id": call_id})}


def result(name: str, response: Json, call_id: str | None = None) -> Json:
    return {"functionResponse": {"name": name, "response": response} | ({} if call_id is None else {"id": call_id})}


API = api_at(STREAM, "alt=sse")


def _told(answer: Answer, parts: list[Json], reason: str | None) -> Json:
    says = answer.says
    usage = {"promptTokenCount": says.tokens_in, "cachedContentTokenCount": says.cached}
    usage |= {"candidatesTokenCount": says.tokens_out, "totalTokenCount": says.tokens_in + says.tokens_out}
    fields = {"modelVersion": answer.model, "responseId": f"gemini-{answer.number}"}
    return reply(*parts, reason=reason, **fields, usageMetadata=usage if says.says_usage else None)


def _chunks(answer: Answer) -> list[list[Json]]:
    """A chunk for each piece of a text and each call, with two calls in one chunk where `turns` has it."""
    chunks: list[list[Json]] = []
    for number, (call_id, part) in enumerate(answer.parts):
        if isinstance(part, Text):
            chunks += [[{"text": piece}] for piece in part.pieces]
        elif number in answer.says.turns and chunks and "functionCall" in chunks[-1][-1]:
            chunks[-1].append(call(part.tool, call_id, **part.arguments))
        else:
            chunks.append([call(part.tool, call_id, **part.arguments)])
    return chunks


def body(answer: Answer) -> Json:
    parts = [part for chunk in _chunks(answer) for part in chunk]
    return _told(answer, parts or [{"text": ""}], "STOP")


def events(answer: Answer) -> Iterator[bytes]:
    told = [_told(answer, parts, None) for parts in _chunks(answer)]
    for one in [*told, _told(answer, [{"text": ""}], "STOP")]:
        yield event(one).replace(b"\n", b"\r\n")


def read(output: bytes) -> tuple[str, list[AskedCall], list[int], str | None]:
    text, asked, reason = "", list[AskedCall](), None
    for chunk in documents(output):
        (candidate,) = chunk["candidates"]
        reason = candidate.get("finishReason") or reason
        assert candidate["content"]["parts"]
        for part in candidate["content"]["parts"]:
            text += part.get("text", "")
            if call := part.get("functionCall"):
                asked.append(AskedCall(call["id"], call["name"], call["args"]))
    return text, asked, [], reason
