"""The meter: addresses of a trial's own that lead to the providers, and what it takes down of what passes."""

import gzip
import json
import re
import tempfile
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.unpacking import MAX_BODY_BYTES
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript
from tests.unit.metering.conftest import either_way, every_api, message_of
from tests.upstream_replies import Slow, Status
from tests.upstream_shapes import Says


async def test_temporary_folders_with_long_paths_are_no_matter(
    metered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    async with metered() as agent:
        assert (await agent.chat()).status_code == 200


async def test_a_trials_addresses_are_gone_with_it(metered, upstream) -> None:
    async with metered() as first, metered() as second:
        root, token = first.trial.base_urls["openai"].split("/openai")[0].rsplit("/", 1)
        assert len(token) >= 32
        other = second.trial.base_urls["openai"].split("/")[3]
        answer = await first.client.post(f"{root}/{other}/openai/v1/chat/completions", json={})
        assert answer.status_code == 404
        assert (await first.client.get(f"{root}/")).status_code == 404
    assert upstream.count == 0


async def test_the_real_key_is_the_meters_and_the_model_that_of_the_spec(metered, upstream) -> None:
    keys = {"OPENAI_API_KEY": "sk-real", "ANTHROPIC_API_KEY": "ant-real"}
    async with metered(environment=keys, model="pinned") as agent:
        headers = {"authorization": f"Bearer {agent.trial.api_key}", "x-api-key": agent.trial.api_key}
        agent.client.headers.update(headers)
        await agent.chat()
        await agent.messages()
        assert "real" not in repr(dict(agent.trial.variables))
        assert agent.trial.variables["OPENAI_API_KEY"] == agent.trial.api_key
    chat, message = upstream.calls
    assert chat.headers["authorization"] == "Bearer sk-real"
    assert message.headers["x-api-key"] == "ant-real"
    assert "authorization" not in message.headers
    assert chat.body["model"] == message.body["model"] == "pinned"


async def test_a_response_in_the_background_could_not_be_metered(metered, upstream) -> None:
    async with metered() as agent:
        answer = await agent.responses(background=True)
    assert answer.status_code == 400
    assert "background" in message_of(answer)
    assert upstream.count == 0


ASKED = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi."}]}).encode()
PACKED = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": lambda content: zlib.compress(content, wbits=-zlib.MAX_WBITS),  # Some leave its header out
    "zstd": lambda content: pa.compress(content, "zstd", asbytes=True),
    "br": lambda content: pa.compress(content, "brotli", asbytes=True),
    "deflate, gzip": lambda content: gzip.compress(zlib.compress(content)),
}


@pytest.mark.parametrize("encoding", PACKED)
async def test_a_packed_request_is_unpacked(metered, upstream, encoding: str) -> None:
    async with metered() as agent:
        url, headers = f"{agent.trial.base_urls['openai']}/chat/completions", {"content-encoding": encoding}
        answer = await agent.client.post(url, content=PACKED[encoding](ASKED), headers=headers)
        broken = await agent.client.post(url, content=b"no", headers=headers)
        too_large = await agent.client.post(url, content=PACKED[encoding](b" " * (MAX_BODY_BYTES + 1)), headers=headers)
        assert (await agent.transcript()).end is EndReason.COMPLETED
    assert (answer.status_code, broken.status_code, too_large.status_code) == (200, 400, 400)
    assert "larger than 64 MiB" in message_of(too_large)
    assert "content-encoding" not in upstream.calls[0].headers
    assert upstream.calls[0].body["messages"][0]["content"] == "Hi."


async def test_a_request_that_is_packed_as_nobody_reads_is_no_failure_of_the_agent(metered, upstream) -> None:
    async with metered() as agent:
        url = f"{agent.trial.base_urls['openai']}/chat/completions"
        answer = await agent.client.post(url, content=ASKED, headers={"content-encoding": "lz4"})
        with pytest.raises(MeasurementError, match="packed as 'lz4'"):
            await agent.transcript(Transcript(end=EndReason.CRASHED))
    assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "gzip, deflate, zstd, br")
    assert upstream.count == 0


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"model": 7, "messages": 3}', b"\xff\xfe"])
@every_api
async def test_a_request_that_is_none_is_refused(metered, upstream, api: str, content: bytes) -> None:
    provider, path = {
        "chat": ("openai", "chat/completions"),
        "responses": ("openai", "responses"),
        "messages": ("anthropic", "v1/messages"),
        "gemini": ("gemini", "v1beta/models/m:generateContent"),
    }[api]
    async with metered() as agent:
        answer = await agent.client.post(f"{agent.trial.base_urls[provider]}/{path}", content=content)
        assert answer.status_code == 400
        assert (await agent.transcript()).end is EndReason.COMPLETED
    assert upstream.count == 0


@every_api
@either_way
async def test_what_was_said_and_used_is_taken_down(metered, upstream, api: str, stream: bool) -> None:
    upstream.says(Says("Hello.", tokens_in=70, tokens_out=7, cached=30))
    async with metered() as agent:
        await getattr(agent, api)(stream)
        transcript = await agent.transcript()
    user, step = transcript.messages
    assert (user.role, user.content) == ("user", "Go on.")
    assert step.content == transcript.output == "Hello."
    usage = step.usage
    assert (usage.tokens_in, usage.tokens_cached, usage.tokens_out) == (70, 30, 7)
    assert usage.cost_usd == pytest.approx(70 * 100 / 1e6)
    assert step.latency_ms is not None
    assert (step.time_to_first_token is not None) == stream
    assert transcript.complete


async def test_an_agent_that_called_no_model_is_taken_at_its_word_but_for_refusals(metered) -> None:
    reported = Transcript(output="I know.", complete=False)
    made = Message(role="assistant", tool_calls=(ToolCall(tool="drop_table", refused=True),))
    async with metered() as agent:
        assert await agent.transcript(reported) == reported
        found = await agent.transcript(Transcript(messages=(made,)))
    assert [call.refused for call in found.tool_calls] == [False]


@pytest.mark.parametrize(
    "reply",
    [Slow(0.05, Says("one two three", tokens_out=3)), Says("word " * 5000, tokens_out=5000)],
    ids=["slow", "long"],
)
async def test_an_agent_that_leaves_before_the_end_of_a_stream_has_made_the_call(
    metered, upstream, reply: Slow | Says
) -> None:
    upstream.script = [reply]
    async with metered() as agent:
        async with agent.streaming() as answer:
            await anext(answer.aiter_bytes())
        (step,) = (await agent.transcript()).steps
    said = reply.says if isinstance(reply, Slow) else reply
    assert (step.content, step.usage.tokens_out) == (said.text, said.tokens_out)


async def test_an_agent_that_goes_on_at_the_end_of_a_reply_is_not_too_quick_for_the_meter(metered, upstream) -> None:
    upstream.says(Slow(0.05, Says(calls=[("look", {})])), Says("Seen."))
    asked = {"role": "user", "content": "Look."}
    async with metered() as agent:
        async with agent.streaming("Look.") as answer:
            read = b""
            async for piece in answer.aiter_bytes():
                read += piece
                if b'"finish_reason": "tool_calls"' in read or b'"finish_reason":"tool_calls"' in read:
                    break
        call_id = re.search(r'"id": ?"(call[^"]*)"', read.decode())
        assert call_id is not None
        calls = [{"id": call_id[1], "type": "function", "function": {"name": "look", "arguments": "{}"}}]
        result = {"role": "tool", "tool_call_id": call_id[1], "content": "a cat"}
        await agent.chat(messages=[asked, {"role": "assistant", "tool_calls": calls}, result])
        transcript = await agent.transcript()
    assert [call.result for call in transcript.tool_calls] == ["a cat"]


async def test_usage_is_asked_for_although_the_agent_does_not(metered, upstream) -> None:
    async with metered() as agent:
        answer = await agent.chat(True)
        transcript = await agent.transcript()
    assert upstream.calls[0].body["stream_options"] == {"include_usage": True}
    chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    assert all(chunk["choices"] for chunk in chunks)
    assert transcript.steps[0].usage.tokens_in == 100


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, {"error": {"message": "Unknown parameter: 'stream_options'.", "code": "unknown_parameter"}}),
        (422, {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}),
        (400, {"message": "unsupported parameter in request"}),
    ],
)
async def test_a_provider_that_does_not_know_the_option_is_asked_without_it(
    metered, upstream, status: int, said: dict[str, object]
) -> None:
    upstream.script = lambda _, body: Status(status, body=said) if "stream_options" in body else Says("Well.")
    async with metered() as agent:
        assert "Well." in (await agent.chat(True)).text
        assert "Well." in (await agent.chat(True)).text
        transcript = await agent.transcript()
    assert upstream.count == 3
    assert [step.usage.tokens_in for step in transcript.steps] == [None, None]
