"""What every API of a provider does alike."""

import copy
import json
from types import ModuleType

import anthropic
import openai
import pytest
from tests.provider_apis import chat, messages, responses
from tests.provider_streams import Json, canned, event, named, refusing

every_api = pytest.mark.parametrize("api", [chat, messages, responses], ids=["chat", "messages", "responses"])
ERRORS = (openai.APIError, anthropic.APIError)


@pytest.mark.parametrize(
    ("api", "body", "most"),
    [
        pytest.param(chat, chat.request(), 5, id="chat"),
        pytest.param(chat, chat.request(max_tokens=5), 5, id="chat, limited"),
        pytest.param(chat, chat.request(stream=True, **chat.BOTH), 5, id="chat, streamed"),
        pytest.param(messages, messages.request(stream=True), 1024, id="messages"),
        pytest.param(responses, responses.request(), 5, id="responses"),
        pytest.param(responses, responses.request(stream=True, max_output_tokens=5), 5, id="responses, limited"),
    ],
)
def test_a_request_with_nothing_to_change_stays_as_it_is(api: ModuleType, body: Json, most: int) -> None:
    assert api.API.prepare(body, model=None, max_tokens_out=None) is body
    assert api.API.prepare(body, model=body["model"], max_tokens_out=most) is body


BOTH_LIMITS = chat.request(max_tokens=9, max_completion_tokens=7, temperature=0.5)


@pytest.mark.parametrize(
    ("api", "body", "limit"),
    [
        pytest.param(chat, BOTH_LIMITS, {"max_tokens": 8}, id="chat"),
        pytest.param(messages, messages.request(), {"max_tokens": 10}, id="messages"),
        pytest.param(responses, responses.request(max_output_tokens=50), {"max_output_tokens": 16}, id="responses"),
    ],
)
def test_model_and_limit_are_set_in_a_copy(api: ModuleType, body: Json, limit: dict[str, int]) -> None:
    original = copy.deepcopy(body)
    (most,) = limit.values()
    assert api.API.prepare(body, model="other", max_tokens_out=most) == {**original, "model": "other", **limit}
    assert body == original


@pytest.mark.parametrize(("status", "headers"), [(400, []), (403, []), (503, [("x-should-retry", "false")])])
@every_api
def test_the_client_library_raises_errors_at_once(api: ModuleType, status: int, headers: list[tuple[str, str]]) -> None:
    body = api.API.error_body(status, "budget_exceeded", "max_steps is used up")
    with canned(json.dumps(body).encode(), status=status, headers=headers) as server, api.client(server) as sdk:
        with pytest.raises(ERRORS, match="max_steps is used up") as raised:
            api.ask(sdk)
        assert raised.value.status_code == status
        assert raised.value.body == (body if api is messages else body["error"])
        assert server.count == 1


@pytest.mark.parametrize(
    ("api", "begun"),
    [(chat, event(chat.TEXT[1])), (messages, named(messages.TEXT[:3])), (responses, named(responses.TEXT[:5]))],
    ids=["chat", "messages", "responses"],
)
def test_the_client_library_raises_errors_in_a_stream(api: ModuleType, begun: bytes) -> None:
    with canned(begun + api.API.error_event("provider_unavailable", "It broke off.")) as server:
        with api.client(server) as sdk, pytest.raises(ERRORS, match=r"It broke off\.") as raised:
            list(api.ask(sdk, stream=True))
        assert getattr(raised.value, "code", "provider_unavailable") == "provider_unavailable"


@pytest.mark.parametrize(("api", "quiet"), [(messages, 2), (responses, 4)], ids=["messages", "responses"])
def test_text_goes_on_at_once_byte_for_byte(api: ModuleType, quiet: int) -> None:
    stream, states = api.API.stream({}, refusing()), []
    for document in api.TEXT:
        sent = event(document, document["type"])
        assert stream.feed(sent) == sent
        states.append((stream.started, stream.ended))
    last = len(api.TEXT) - 1
    assert states == [(number >= quiet, number == last) for number in range(last + 1)]
    assert (stream.reply.text, stream.characters) == ("Hello there", len("Hello there"))
    assert (stream.reply.usage, stream.reply.model) == (api.USED, api.MODEL)


@pytest.mark.parametrize(("api", "first"), [(messages, 4), (responses, 8)], ids=["messages", "responses"])
def test_calls_are_held_back_until_they_are_whole_and_asked_about_once(api: ModuleType, first: int) -> None:
    withheld = refusing()
    stream = api.API.stream({}, withheld)
    sent = [event(document, document["type"]) for document in api.CALLS]
    got = [stream.feed(one) for one in sent]
    assert b"".join(got) == b"".join(sent)
    assert got[: first + 4] == [*sent[:first], *[b""] * 4]
    assert got[first + 4] == b"".join(sent[first : first + 5])
    assert withheld.asked == [api.READ, api.DELETE]
    assert stream.reply.calls == (api.READ, api.DELETE)
    assert stream.reply.text == "Okay.Then?"
