"""Providers in trouble behind the meter and agents that go on for ever: whose failure it is, and who ends it."""

import asyncio
import json
import time

import httpx
import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.ledger import MOST_UNANSWERED
from passgate.tasks.model.transcript import EndReason, Transcript
from passgate.tasks.providers.calls import Stage
from passgate.tasks.providers.registry import PROVIDERS
from tests.unit.conftest import LONG, LoopClock
from tests.unit.metering.conftest import Metered, either_way, every_api
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import (
    CutShort,
    Down,
    MalformedJson,
    Reply,
    ResetMidBody,
    ResetMidStream,
    Silent,
    Slow,
    Status,
    WrongContentType,
)
from tests.upstream_shapes import Says
from tests.waiting import until

CRASHED = Transcript(output="Sorry.", end=EndReason.CRASHED)


def refusal(status: int, message: str) -> Status:
    return Status(status, body={"type": "error", "error": {"type": "invalid_request_error", "message": message}})


async def under_way(
    agent: Metered, upstream: ScriptedUpstream, stream: bool, *, calls: int = 1
) -> asyncio.Task[httpx.Response]:
    """A call of the agent that has come to the provider, at its `calls`-th attempt."""
    call = asyncio.create_task(agent.chat(stream))
    await until(lambda: upstream.count >= calls)
    return call


@every_api
@either_way
@pytest.mark.parametrize(
    "fault", [Down(), Status(500), Status(529), Status(429), WrongContentType(), ResetMidBody(), MalformedJson()]
)
async def test_a_broken_provider_is_no_failure_of_the_agent(
    metered, upstream, api: str, stream: bool, fault: Reply
) -> None:
    upstream.script = [fault]
    async with metered() as agent:
        answer = await getattr(agent, api)(stream)
        if isinstance(fault, MalformedJson | ResetMidBody) and stream:
            assert (answer.status_code, b"error" in answer.content) == (200, True)
        else:
            assert (answer.status_code, answer.headers["x-should-retry"]) == (503, "false")
        with pytest.raises(MeasurementError) as caught:
            await agent.transcript(Transcript(output="Sorry.", end=EndReason.CRASHED))
    assert caught.value.transient


@every_api
@pytest.mark.parametrize("fault", [ResetMidStream(2), CutShort(2), MalformedJson()])
async def test_a_stream_that_breaks_off_ends_with_an_error_event(metered, upstream, api: str, fault: Reply) -> None:
    upstream.script = [fault]
    async with metered() as agent:
        answer = await getattr(agent, api)(True)
        assert answer.status_code == 200
        assert any(b"error" in line for line in answer.content.splitlines()[-3:-1])
        with pytest.raises(MeasurementError):
            await agent.transcript()
    assert upstream.count == 1


async def test_trouble_that_passes_is_not_noticed_by_the_agent(metered, upstream) -> None:
    upstream.says(Status(503), Status(429, {"retry-after": "0"}), Says("At last."))
    async with metered() as agent:
        assert "At last." in (await agent.chat()).text
        transcript = await agent.transcript()
    assert len(transcript.steps) == 1
    assert upstream.count == 3


@either_way
async def test_silence_within_the_providers_own_time_is_the_agents_time_out(metered, upstream, stream: bool) -> None:
    upstream.script = [Silent(LONG)]
    async with metered() as agent:
        call = await under_way(agent, upstream, stream)
        transcript = await agent.transcript(Transcript(end=EndReason.TIMED_OUT))
        call.cancel()
    assert transcript.end is EndReason.TIMED_OUT
    (step,) = transcript.steps
    assert step.usage.tokens_in is None


@either_way
async def test_silence_beyond_the_providers_own_time_is_not_the_agents(
    metered, upstream, clock: LoopClock, stream: bool
) -> None:
    upstream.says(Status(503), Status(503), Silent(LONG))
    async with metered(silence=LONG) as agent:
        assert (await clock.run_out(agent.chat(stream), lambda: upstream.count == 3)).status_code == 503
        with pytest.raises(MeasurementError, match="silent for 3600 s"):
            await agent.transcript(Transcript(end=EndReason.TIMED_OUT))


async def test_a_reply_that_is_still_written_when_the_time_is_up_is_the_agents_time_out(metered, upstream) -> None:
    upstream.says(Status(503), Slow(LONG))
    async with metered() as agent:
        call = await under_way(agent, upstream, True, calls=2)
        await until(lambda: agent.stages == [Stage.REST])
        transcript = await agent.transcript(Transcript(end=EndReason.TIMED_OUT))
        call.cancel()
    assert transcript.end is EndReason.TIMED_OUT


@pytest.mark.parametrize("end", [EndReason.TIMED_OUT, EndReason.CRASHED])
async def test_a_call_that_is_being_tried_again_when_the_agent_ends_is_the_providers_fault(
    metered, upstream, end: EndReason
) -> None:
    upstream.script = [Status(429, {"retry-after": "60"})]
    async with metered() as agent:
        call = await under_way(agent, upstream, False)
        await until(lambda: agent.stages == [Stage.PAUSE])
        with pytest.raises(MeasurementError, match=r"waiting for the next attempt; before, it answered 429") as caught:
            await agent.transcript(Transcript(end=end))
        call.cancel()
    assert caught.value.transient


@every_api
@either_way
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "Incorrect API key provided"),
        (402, "Payment required"),
        (403, "Country, region, or territory not supported"),
        (400, "Your credit balance is too low to use the API. Go to Plans & Billing."),
        (400, "The prompt triggered the content management policy"),
        (404, "Not Found"),
    ],
)
async def test_an_account_an_address_or_a_filter_that_refuses_is_no_failure_of_the_agent(
    metered, upstream, api: str, stream: bool, status: int, said: str
) -> None:
    upstream.script = [refusal(status, said)]
    async with metered(environment={provider.key_variable: "sk-real" for provider in PROVIDERS.values()}) as agent:
        assert (await getattr(agent, api)(stream)).status_code == status
        with pytest.raises(MeasurementError, match=f"answered {status}") as caught:
            await agent.transcript(CRASHED)
    assert not caught.value.transient


@pytest.mark.parametrize(
    ("key", "why"), [({}, r"^OPENAI_API_KEY is not set$"), ({"OPENAI_API_KEY": "sk"}, "answered 401")]
)
@either_way
async def test_a_key_that_is_not_set_is_one_line(
    metered, upstream, stream: bool, key: dict[str, str], why: str
) -> None:
    upstream.script = [Status(401)]
    async with metered(environment=key) as agent:
        await agent.chat(stream)
        with pytest.raises(MeasurementError, match=why):
            await agent.transcript(CRASHED)


@every_api
@either_way
async def test_a_model_or_an_endpoint_that_the_agent_alone_asks_for_is_its_own_doing(
    metered, upstream, api: str, stream: bool
) -> None:
    upstream.says(refusal(404, "The model `m` does not exist"), Says("Yes."), refusal(404, "Not Found"))
    async with metered() as agent:
        for status in (404, 200, 404):
            assert (await getattr(agent, api)(stream)).status_code == status
        assert (await agent.transcript(CRASHED)).end is EndReason.CRASHED


@pytest.mark.parametrize(
    ("settings", "reply"),
    [
        ({"model": "pinned"}, Status(404, body={"error": {"message": "The model `pinned` does not exist"}})),
        ({"max_tokens": 5000}, Status(400, body={"error": {"message": "max_tokens must be at least 9000"}})),
    ],
)
async def test_what_passgate_has_changed_in_a_request_is_no_failure_of_the_agent(
    metered, upstream, settings: dict[str, object], reply: Status
) -> None:
    upstream.script = [reply]
    async with metered(**settings) as agent:
        await agent.chat(max_tokens=9000)
        with pytest.raises(MeasurementError, match=r"pinned|max_tokens"):
            await agent.transcript(CRASHED)


def event(document: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


SAID = {"code": 502, "message": "the upstream closed the connection"}
FAILED = {"object": "response", "status": "failed", "error": {"code": "server_error", "message": SAID["message"]}}
FILTERED = {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "content_filter"}}


def chat(**choice: object) -> dict[str, object]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, **choice}]}


def stopped(reason: str) -> dict[str, object]:
    """A chat completion, or its chunk, that ends for this reason."""
    return chat(message={"content": "I"}, delta={"content": "I"}, finish_reason=reason)


def message(reason: str) -> dict[str, object]:
    """A message, or the event with its end, that ends for this reason."""
    end = {"stop_reason": reason}
    return {"type": "message_delta", "content": [], "delta": end, **end}


ERRORS_IN_REPLIES: list[tuple[str, dict[str, object]]] = [
    ("chat", {"error": SAID}),
    ("chat", {"object": "error", **SAID}),
    ("chat", {**chat(message={"content": ""}, delta={"content": ""}, finish_reason="stop"), "error": SAID}),
    ("chat", chat(message={"content": "I"}, delta={"content": "I"}, finish_reason="error", error=SAID)),
    ("chat", stopped("error")),
    ("chat", chat(message={"content": "", "error": SAID}, delta={"error": SAID}, finish_reason="stop")),
    ("chat", stopped("content_filter")),
    ("chat", stopped("content_filter: SAFETY")),
    ("chat", stopped("insufficient_system_resource")),
    ("chat", stopped("network_error")),
    ("chat", stopped("sensitive")),
    ("chat", stopped("abort")),
    ("responses", {"error": SAID}),
    ("responses", {"type": "error", **SAID}),
    ("responses", {**FAILED, "output": [], "type": "response.failed", "response": {**FAILED, "output": []}}),
    ("responses", {**FILTERED, "output": [], "type": "response.incomplete", "response": {**FILTERED, "output": []}}),
    ("messages", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ("messages", {"error": SAID}),
    ("messages", message("error")),
    ("messages", message("content_filter")),
    ("messages", message("refusal")),
    ("messages", {**message("error"), "delta": {"stop_reason": "error", "error": SAID}}),
    ("gemini", {"candidates": [{"finishReason": "SAFETY"}]}),
    ("gemini", {"error": SAID}),
]


@either_way
@pytest.mark.parametrize(("api", "document"), ERRORS_IN_REPLIES)
async def test_an_error_inside_a_reply_is_no_failure_of_the_agent_wherever_it_stands(
    metered, upstream, api: str, document: dict[str, object], stream: bool
) -> None:
    whole = event(document) + b"data: [DONE]\n\n" if stream else json.dumps(document).encode()
    upstream.script = [Status(200, {"content-type": "text/event-stream" if stream else "application/json"}, whole)]
    async with metered() as agent:
        answer = await getattr(agent, api)(stream)
        assert b"error" in answer.content
        assert (answer.status_code == 200) is stream
        with pytest.raises(MeasurementError, match=r"the provider says: |the model was stopped"):
            await agent.transcript(CRASHED)


@either_way
@pytest.mark.parametrize("document", [{}, {"choices": []}, {"detail": "Internal Server Error"}, {"errors": [SAID]}])
async def test_a_chat_completion_without_a_choice_is_no_failure_of_the_agent(
    metered, upstream, document: dict[str, object], stream: bool
) -> None:
    whole = event(document) + b"data: [DONE]\n\n" if stream else json.dumps(document).encode()
    upstream.script = [Status(200, {"content-type": "text/event-stream" if stream else "application/json"}, whole)]
    async with metered() as agent:
        assert b"error" in (await agent.chat(stream)).content
        with pytest.raises(MeasurementError, match="choices"):
            await agent.transcript(CRASHED)


@either_way
async def test_an_error_inside_a_reply_that_the_request_provokes_is_the_agents(metered, upstream, stream: bool) -> None:
    said = {"code": "context_length_exceeded", "message": "Your input exceeds the context window."}
    document = {**FAILED, "error": said, "output": []}
    whole = event({"type": "response.failed", "response": document}) if stream else json.dumps(document).encode()
    upstream.script = [Status(200, {"content-type": "text/event-stream" if stream else "application/json"}, whole)]
    async with metered() as agent:
        assert "exceeds the context window" in (await agent.responses(stream)).text
        assert (await agent.transcript(CRASHED)).end is EndReason.CRASHED


async def test_an_agent_whose_calls_were_all_refused_is_known_to_have_made_no_step(metered, upstream) -> None:
    upstream.says(Status(400))
    async with metered() as agent:
        await agent.chat()
        transcript = await agent.transcript(Transcript(output="Sorry.", complete=False))
    assert (transcript.complete, transcript.steps, transcript.output) == (True, (), "Sorry.")


async def test_a_request_that_the_provider_finds_wrong_is_the_agents_own(metered, upstream) -> None:
    upstream.says(Status(400), Says("Better."))
    async with metered(max_steps=1) as agent:
        assert (await agent.chat()).status_code == 400
        assert (await agent.chat()).status_code == 200
        transcript = await agent.transcript()
    assert len(transcript.steps) == 1


async def calls_until_over(agent: Metered, api: str = "chat", *, stream: bool = False, most: int = 60) -> int:
    """How many calls an agent makes that stops only when the meter says that the trial is over."""
    over = asyncio.ensure_future(agent.trial.over())
    for number in range(most):
        if over.done():
            return number
        await getattr(agent, api)(stream)
        await asyncio.sleep(0)
    over.cancel()
    return most


@every_api
@either_way
@pytest.mark.parametrize("budget", [{"max_tokens": 10_000}, {"max_cost_usd": 1.0}])
async def test_a_provider_that_does_not_say_what_was_used_ends_a_trial_with_such_a_budget_at_once(
    metered, upstream, api: str, stream: bool, budget: dict[str, float]
) -> None:
    upstream.says(Says("Well.", says_usage=False))
    async with metered(**budget) as agent:
        assert await calls_until_over(agent, api, stream=stream) == 1
        assert (await getattr(agent, api)(stream)).status_code == 400
        with pytest.raises(MeasurementError, match="does not report what a call used"):
            await agent.transcript()
    assert upstream.count == 1


async def test_without_such_a_budget_nobody_needs_to_know(metered, upstream) -> None:
    upstream.says(Says("Well.", says_usage=False))
    async with metered(max_steps=5) as agent:
        assert await calls_until_over(agent, most=5) == 5
        assert (await agent.transcript()).end is EndReason.COMPLETED


@either_way
async def test_an_agent_that_repeats_a_wrong_request_has_failed(metered, upstream, stream: bool) -> None:
    upstream.says(Status(400))
    async with metered(max_steps=3) as agent:
        assert await calls_until_over(agent, stream=stream) == MOST_UNANSWERED
        transcript = await agent.transcript()
    assert transcript.end is EndReason.OVER_BUDGET
    assert transcript.detail.startswith("over budget: 20 calls in a row got no reply, the last one: 127.0.0.1:")
    assert "answered 400" in transcript.detail
    assert upstream.count == MOST_UNANSWERED


async def test_requests_that_are_none_end_the_trial_too(metered, upstream) -> None:
    async with metered(max_steps=3) as agent:
        for _ in range(MOST_UNANSWERED):
            await agent.chat(messages="no")
        transcript = await agent.transcript()
    assert transcript.end is EndReason.OVER_BUDGET
    assert upstream.count == 0


@pytest.mark.parametrize("fault", [CutShort(2), Status(401)])
async def test_a_provider_that_never_answers_ends_the_trial_as_an_error(metered, upstream, fault: Reply) -> None:
    upstream.says(fault)
    async with metered(max_steps=3) as agent:
        assert await calls_until_over(agent, stream=True) == MOST_UNANSWERED
        with pytest.raises(MeasurementError):
            await agent.transcript()


async def test_an_answer_in_between_begins_the_count_anew(metered, upstream) -> None:
    upstream.script = lambda number, _: Says("Well.") if number % 10 == 9 else Status(400)
    async with metered() as agent:
        assert await calls_until_over(agent, most=45) == 45


@either_way
async def test_failed_attempts_and_pauses_are_not_the_agents_time(metered, upstream, stream: bool) -> None:
    upstream.says(Status(429, {"retry-after": "0.4"}), Status(503, {"retry-after": "0.4"}), Says("At last."))
    async with metered() as agent:
        begun_at = time.monotonic()
        await agent.chat(stream)
        total, waited = time.monotonic() - begun_at, agent.trial.seconds_waited
        (step,) = (await agent.transcript()).steps
    assert waited >= 0.8
    assert (step.latency_ms or 0) / 1000 <= total - waited
    assert (step.time_to_first_token or 0) <= total - waited


@pytest.mark.parametrize(
    ("replies", "could_know"), [([], True), ([Down()], False), ([Says("Yes."), Down()], True), ([Status(400)], False)]
)
async def test_an_agent_can_know_how_its_trial_goes_once_a_call_is_answered(
    metered, upstream, replies: list[Reply], could_know: bool
) -> None:
    upstream.says(*replies, Down())
    async with metered() as agent:
        for _ in replies:
            await agent.chat()
        assert agent.trial.could_know is could_know


async def test_calls_that_wait_side_by_side_wait_once_and_calls_in_vain_are_nobodys_time(metered, upstream) -> None:
    upstream.says(Status(503, {"retry-after": "0.2"}))
    async with metered() as agent:
        begun_at = time.monotonic()
        await asyncio.gather(agent.chat(), agent.chat(), agent.chat())
        assert 0.4 <= agent.trial.seconds_waited <= time.monotonic() - begun_at


@pytest.mark.parametrize(("reply", "is_error"), [(Status(503, {"retry-after": "1.1"}), True), (Status(400), False)])
async def test_an_agent_that_waited_for_much_of_its_time_has_not_been_too_slow(
    metered, upstream, reply: Status, is_error: bool
) -> None:
    upstream.says(reply, Says("Yes."))
    async with metered() as agent:
        await agent.chat()
        await agent.chat()
        known = await agent.trial.transcript(Transcript(end=EndReason.TIMED_OUT))
    assert known.transcript.end is EndReason.TIMED_OUT
    assert (known.error is not None and known.error.transient) is is_error
