"""The meter: budgets that hold before a call is paid for, whatever API the agent speaks."""

import asyncio
import gzip
import json
import re
import tempfile
from pathlib import Path

import httpx
import pytest
from tests.unit.budgets.conftest import APIS, OpenMeter
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import (
    CutShort,
    Down,
    MalformedJson,
    ResetMidBody,
    ResetMidStream,
    Silent,
    Slow,
    Status,
    WrongContentType,
)
from tests.upstream_shapes import Says

from passgate.tasks.budgets.purse import Purse
from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript

either_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
every_api = pytest.mark.parametrize("api", APIS)


def message_of(response: httpx.Response) -> str:
    message: str = response.json()["error"]["message"]
    return message


class TestBudgets:
    @every_api
    @either_way
    @pytest.mark.parametrize(
        ("budget", "message"),
        [
            ({"max_steps": 4}, "over budget: max_steps is 4 and one more model call was asked for"),
            ({"max_cost_usd": 0.04}, "over budget: max_cost_usd is 0.04 and $0.04 were used"),
            ({"max_tokens": 480}, "over budget: max_tokens is 480, 480 were used and the next call needs 101"),
        ],
    )
    async def test_the_call_beyond_a_budget_never_reaches_the_provider(
        self,
        metered: OpenMeter,
        upstream: ScriptedUpstream,
        api: str,
        stream: bool,
        budget: dict[str, float],
        message: str,
    ) -> None:
        async with metered(**budget) as agent:
            answers = [await getattr(agent, api)(stream) for _ in range(5)]
            assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 400]
            assert message_of(answers[4]) == message
            transcript = await agent.transcript()
        assert upstream.count == 4
        assert (transcript.end, transcript.detail) == (EndReason.OVER_BUDGET, message)
        assert len(transcript.steps) == 4
        assert transcript.whole_usage.cost_usd == pytest.approx(0.04)

    @every_api
    @either_way
    async def test_the_tool_call_beyond_max_tool_calls_never_reaches_the_agent(
        self, metered: OpenMeter, upstream: ScriptedUpstream, api: str, stream: bool
    ) -> None:
        upstream.says(Says("Well.", calls=[("look", {"at": "it"})]))
        async with metered(max_tool_calls=4) as agent:
            answers = [await getattr(agent, api)(stream) for _ in range(6)]
            transcript = await agent.transcript()
        assert [b"look" in answer.content for answer in answers] == [True] * 4 + [False] * 2
        assert [answer.status_code for answer in answers] == [200] * 5 + [400]
        assert upstream.count == 5
        assert transcript.detail == "over budget: max_tool_calls is 4 and one more was asked for"
        assert [call.refused for call in transcript.tool_calls] == [False] * 4 + [True]

    async def test_no_more_tokens_are_asked_for_than_are_left(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        async with metered(max_tokens=1000) as agent:
            await agent.messages(max_tokens=4000)
            await agent.chat(max_completion_tokens=4000)
            await agent.responses(max_output_tokens=5)
            await agent.chat()
        first, second, third, fourth = (call.body for call in upstream.calls)
        assert first["max_tokens"] == 1000
        assert second["max_completion_tokens"] <= 880
        assert third["max_output_tokens"] == 5
        assert not {"max_tokens", "max_completion_tokens"} & fourth.keys()

    @every_api
    async def test_a_stream_is_cut_where_the_tokens_end(
        self, metered: OpenMeter, upstream: ScriptedUpstream, api: str
    ) -> None:
        upstream.script = [Slow(0.001, Says("word " * 2000, tokens_out=2000))]
        async with metered(max_tokens=60) as agent:
            answer = await getattr(agent, api)(True)
            transcript = await agent.transcript()
        assert 72 <= answer.text.count("word") < 1900
        assert transcript.detail == "over budget: max_tokens is 60, and a reply was cut at 60 tokens"
        assert transcript.steps[0].usage.cost_usd is None, "what the rest would have used is not known"

    async def test_calls_side_by_side_are_held_too(self, metered: OpenMeter, upstream: ScriptedUpstream) -> None:
        async with metered(max_steps=4) as agent:
            answers = await asyncio.gather(*(agent.chat() for _ in range(12)))
        assert sorted(answer.status_code for answer in answers) == [200] * 4 + [400] * 8
        assert upstream.count == 4

    async def test_whoever_waits_for_the_end_is_told(self, metered: OpenMeter) -> None:
        async with metered(max_steps=1) as agent:
            over = asyncio.create_task(agent.trial.over())
            await agent.chat()
            assert not over.done()
            await agent.chat()
            await asyncio.wait_for(over, 1)


class TestCost:
    async def test_an_unknown_price_is_an_error_and_not_free(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        async with metered(prices=PriceTable(), max_cost_usd=1.0) as agent:
            answer = await agent.chat(model="new-model")
            assert answer.status_code == 400
            with pytest.raises(MeasurementError, match=r"'new-model' is not known and the task has .* prices\.yaml"):
                await agent.transcript()
        assert upstream.count == 0

    async def test_without_any_limit_on_money_an_unknown_price_is_only_unknown(self, metered: OpenMeter) -> None:
        async with metered(prices=PriceTable()) as agent:
            await agent.chat()
            transcript = await agent.transcript()
        assert transcript.steps[0].usage.cost_usd is None
        assert transcript.steps[0].usage.tokens_in == 100

    async def test_the_cap_of_the_run_stops_every_trial_and_is_nobodys_fault(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        purse = Purse(0.03)
        async with metered(purse=purse) as agent:
            answers = [await agent.chat() for _ in range(4)]
            with pytest.raises(CostCapError, match=r"cost cap of \$0\.03"):
                await agent.transcript()
        assert [answer.status_code for answer in answers] == [200, 200, 200, 400]
        assert upstream.count == 3
        assert purse.exhausted


class TestForbiddenCalls:
    @every_api
    @either_way
    async def test_a_forbidden_call_is_taken_out_of_the_reply(
        self, metered: OpenMeter, upstream: ScriptedUpstream, api: str, stream: bool
    ) -> None:
        upstream.says(Says("Both.", calls=[("drop_table", {"name": "users"}), ("look", {"at": "it"})]))
        async with metered(forbidden=lambda call: call.tool == "drop_table") as agent:
            answer = await getattr(agent, api)(stream)
            after = await getattr(agent, api)(stream)
            transcript = await agent.transcript()
        assert b"drop_table" not in answer.content
        assert b"look" in answer.content
        assert after.status_code == 400
        assert upstream.count == 1
        assert transcript.end is EndReason.FORBIDDEN_CALL
        refused = transcript.tool_calls[0]
        assert (refused.tool, refused.arguments, refused.refused) == ("drop_table", {"name": "users"}, True)

    async def test_arguments_decide_too(self, metered: OpenMeter, upstream: ScriptedUpstream) -> None:
        upstream.says(Says(calls=[("send", {"to": "a"})]), Says(calls=[("send", {"to": "evil"})]))
        async with metered(forbidden=lambda call: call.arguments == {"to": "evil"}) as agent:
            assert b"send" in (await agent.chat()).content
            assert b"send" not in (await agent.chat()).content


class TestProviders:
    @every_api
    @either_way
    @pytest.mark.parametrize(
        ("fault", "message"),
        [
            (Down(), "127.0.0.1"),
            (Status(500), "500"),
            (Status(529), "529"),
            (Status(429), "429"),
            (WrongContentType(), "text/html|content type"),
            (ResetMidBody(), "127.0.0.1"),
        ],
    )
    async def test_a_broken_provider_is_no_failure_of_the_agent(
        self, metered: OpenMeter, upstream: ScriptedUpstream, api: str, stream: bool, fault: object, message: str
    ) -> None:
        upstream.script = [fault]  # type: ignore[list-item]
        async with metered(seconds=3) as agent:
            answer = await getattr(agent, api)(stream)
            assert answer.status_code in {200, 503}
            if answer.status_code == 503:
                assert answer.headers["x-should-retry"] == "false"
            else:
                assert b"error" in answer.content
            with pytest.raises(MeasurementError) as caught:
                await agent.transcript(Transcript(output="Sorry.", end=EndReason.CRASHED))
        assert caught.value.transient

    @every_api
    async def test_malformed_json_is_no_failure_of_the_agent(
        self, metered: OpenMeter, upstream: ScriptedUpstream, api: str
    ) -> None:
        upstream.script = [MalformedJson()]
        async with metered(seconds=3) as agent:
            assert (await getattr(agent, api)()).status_code == 503
            with pytest.raises(MeasurementError):
                await agent.transcript()

    @every_api
    @pytest.mark.parametrize("fault", [ResetMidStream(2), CutShort(2), MalformedJson()])
    async def test_a_stream_that_breaks_off_ends_with_an_error_event(
        self, metered: OpenMeter, upstream: ScriptedUpstream, api: str, fault: object
    ) -> None:
        upstream.script = [fault]  # type: ignore[list-item]
        async with metered(seconds=5) as agent:
            answer = await getattr(agent, api)(True)
            assert answer.status_code == 200
            assert b"error" in answer.content.splitlines()[-2] or b"error" in answer.content.splitlines()[-3]
            with pytest.raises(MeasurementError):
                await agent.transcript()
        assert upstream.count == 1

    async def test_trouble_that_passes_is_not_noticed_by_the_agent(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        upstream.says(Status(503), Status(429, {"retry-after": "0"}), Says("At last."))
        async with metered() as agent:
            assert "At last." in (await agent.chat()).text
            transcript = await agent.transcript()
        assert len(transcript.steps) == 1
        assert upstream.count == 3

    @either_way
    async def test_a_silent_provider_ends_with_the_time_of_the_trial(
        self, metered: OpenMeter, upstream: ScriptedUpstream, stream: bool
    ) -> None:
        upstream.script = [Silent(30)]
        async with metered(seconds=1.0) as agent:
            answer = await agent.chat(stream)
            assert answer.status_code == 503
            with pytest.raises(MeasurementError, match="s were over while"):
                await agent.transcript()

    @pytest.mark.parametrize("status", [401, 403, 404])
    async def test_a_key_or_model_that_the_provider_refuses_is_no_failure_of_the_agent(
        self, metered: OpenMeter, upstream: ScriptedUpstream, status: int
    ) -> None:
        upstream.script = [Status(status)]
        async with metered() as agent:
            assert (await agent.chat()).status_code == status
            with pytest.raises(MeasurementError, match=f"answered {status}") as caught:
                await agent.transcript()
        assert not caught.value.transient

    async def test_a_request_that_the_provider_finds_wrong_is_the_agents_own(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        upstream.says(Status(400), Says("Better."))
        async with metered(max_steps=1) as agent:
            assert (await agent.chat()).status_code == 400
            assert (await agent.chat()).status_code == 200
            transcript = await agent.transcript()
        assert len(transcript.steps) == 1


class TestTranscripts:
    @every_api
    @either_way
    async def test_what_was_said_and_used_is_taken_down(
        self, metered: OpenMeter, upstream: ScriptedUpstream, api: str, stream: bool
    ) -> None:
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

    async def test_an_agent_that_called_no_model_is_taken_at_its_word(self, metered: OpenMeter) -> None:
        reported = Transcript(output="I know.", complete=False)
        async with metered() as agent:
            assert await agent.transcript(reported) == reported

    async def test_no_agent_can_say_that_a_call_of_its_own_was_refused(self, metered: OpenMeter) -> None:
        made = ToolCall(tool="drop_table", refused=True)
        reported = Transcript(messages=(Message(role="assistant", tool_calls=(made,)),))
        async with metered() as agent:
            assert [call.refused for call in (await agent.transcript(reported)).tool_calls] == [False]

    async def test_an_agent_that_leaves_before_the_end_of_a_stream_has_made_the_call(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        upstream.script = [Slow(0.05, Says("one two three", tokens_out=3))]
        async with metered() as agent:
            body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "stream": True}
            url = f"{agent.trial.openai_base_url}/chat/completions"
            async with agent.client.stream("POST", url, json=body) as answer:
                await anext(answer.aiter_bytes())
            transcript = await agent.transcript()
        assert transcript.steps[0].content == "one two three"
        assert transcript.steps[0].usage.tokens_out == 3

    async def test_an_agent_that_goes_on_at_the_end_of_a_reply_is_not_too_quick_for_the_meter(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        upstream.says(Slow(0.05, Says(calls=[("look", {})])), Says("Seen."))
        asked = {"role": "user", "content": "Look."}
        async with metered() as agent:
            url = f"{agent.trial.openai_base_url}/chat/completions"
            body = {"model": "m", "messages": [asked], "stream": True}
            async with agent.client.stream("POST", url, json=body) as answer:
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

    async def test_an_agent_that_leaves_a_long_stream_holds_nothing_up(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        upstream.script = [Says("word " * 5000, tokens_out=5000)]
        async with metered() as agent:
            body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "stream": True}
            url = f"{agent.trial.openai_base_url}/chat/completions"
            async with agent.client.stream("POST", url, json=body) as answer:
                await anext(answer.aiter_bytes())
            transcript = await agent.transcript()
        assert transcript.steps[0].usage.tokens_out == 5000

    async def test_a_call_under_way_when_the_time_is_up_is_a_step_of_unknown_use(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        upstream.script = [Silent(30)]
        async with metered() as agent:
            call = asyncio.create_task(agent.chat())
            while not upstream.count:
                await asyncio.sleep(0.01)
            transcript = await agent.transcript(Transcript(end=EndReason.TIMED_OUT))
            call.cancel()
        assert len(transcript.steps) == 1
        assert transcript.steps[0].usage.tokens_in is None

    async def test_usage_is_asked_for_although_the_agent_does_not(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        async with metered() as agent:
            answer = await agent.chat(True)
            transcript = await agent.transcript()
        assert upstream.calls[0].body["stream_options"] == {"include_usage": True}
        chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
        assert all(chunk["choices"] for chunk in chunks)
        assert transcript.steps[0].usage.tokens_in == 100


class TestAddresses:
    async def test_temporary_folders_with_long_paths_are_no_matter(
        self, metered: OpenMeter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / ("long" * 30)
        folder.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        async with metered() as agent:
            assert (await agent.chat()).status_code == 200

    async def test_a_trials_addresses_are_gone_with_it(self, metered: OpenMeter, upstream: ScriptedUpstream) -> None:
        async with metered() as first, metered() as second:
            root, token = first.trial.openai_base_url.split("/openai")[0].rsplit("/", 1)
            assert len(token) >= 32
            other = second.trial.openai_base_url.split("/")[3]
            answer = await first.client.post(f"{root}/{other}/openai/v1/chat/completions", json={})
            assert answer.status_code == 404
            assert (await first.client.get(f"{root}/")).status_code == 404
        assert upstream.count == 0

    async def test_the_real_key_is_the_meters_own(self, metered: OpenMeter, upstream: ScriptedUpstream) -> None:
        keys = {"OPENAI_API_KEY": "sk-real", "ANTHROPIC_API_KEY": "ant-real"}
        async with metered(environment=keys) as agent:
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

    async def test_the_model_of_the_spec_goes_before_the_agents(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        async with metered(model="pinned") as agent:
            await agent.chat()
        assert upstream.calls[0].body["model"] == "pinned"

    async def test_a_response_in_the_background_could_not_be_metered(
        self, metered: OpenMeter, upstream: ScriptedUpstream
    ) -> None:
        async with metered() as agent:
            answer = await agent.responses(background=True)
        assert answer.status_code == 400
        assert "background" in message_of(answer)
        assert upstream.count == 0

    async def test_a_packed_request_is_unpacked(self, metered: OpenMeter, upstream: ScriptedUpstream) -> None:
        content = gzip.compress(json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi."}]}).encode())
        async with metered() as agent:
            url = f"{agent.trial.openai_base_url}/chat/completions"
            answer = await agent.client.post(url, content=content, headers={"content-encoding": "gzip"})
            other = await agent.client.post(url, content=content, headers={"content-encoding": "zstd"})
            broken = await agent.client.post(url, content=b"no", headers={"content-encoding": "gzip"})
        assert (answer.status_code, other.status_code, broken.status_code) == (200, 400, 400)
        assert "content-encoding" not in upstream.calls[0].headers
        assert upstream.calls[0].body["messages"][0]["content"] == "Hi."

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"model": 7, "messages": 3}', b"\xff\xfe"])
    @every_api
    async def test_a_request_that_is_none_is_refused(
        self, metered: OpenMeter, upstream: ScriptedUpstream, api: str, content: bytes
    ) -> None:
        path = {"chat": "chat/completions", "responses": "responses", "messages": "v1/messages"}[api]
        async with metered() as agent:
            base = agent.trial.anthropic_base_url if api == "messages" else agent.trial.openai_base_url
            answer = await agent.client.post(f"{base}/{path}", content=content)
            assert answer.status_code == 400
            assert (await agent.transcript()).end is EndReason.COMPLETED
        assert upstream.count == 0
