"""What replies state beside their tokens: tools that the provider ran, tiers, cache writes for an hour."""

import pytest
from tests.property.api_sides import CHAT, GEMINI, MESSAGES, RESPONSES
from tests.provider_apis import chat, messages, responses
from tests.provider_streams import Json, event, named, passed, refusing, unnamed

from passgate.tasks.model.price import Charges
from passgate.tasks.providers.apis.interface import Api

CITED = [{"type": "url_citation", "url_citation": {"url": "https://example.com"}}]
SEARCHED = {"server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0}, "service_tier": "priority"}
WRITTEN = {"cache_creation": {"ephemeral_1h_input_tokens": 60, "ephemeral_5m_input_tokens": 40}}
RUN = {"type": "server_tool_use", "id": "s", "name": "bash_code_execution", "input": {}}
ITEMS: list[Json] = [
    {"type": "web_search_call", "id": "a", "action": {"type": "search"}},
    {"type": "code_interpreter_call", "id": "b", "container_id": "c"},
    {"type": "code_interpreter_call", "id": "d", "container_id": "c"},
    {"type": "mcp_call", "id": "e", "name": "x", "arguments": "{}"},
]
GROUNDED = {
    "candidates": [
        {
            "content": {"parts": [{"text": "a"}]},
            "finishReason": "STOP",
            "groundingMetadata": {"webSearchQueries": ["a", "b"], "groundingChunks": [{"web": {}}, {"maps": {}}]},
        }
    ],
    "usageMetadata": {"promptTokenCount": 1, "serviceTier": "FLEX"},
}
USAGE = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 100, **SEARCHED, **WRITTEN}
CASES: list[tuple[Api, Json, bytes, str, int, dict[str, int]]] = [
    (
        CHAT,
        chat.completion({"content": "a", "annotations": CITED}, service_tier="flex"),
        unnamed([chat.chunk({"content": "a", "annotations": CITED}, "stop", service_tier="flex")]),
        *("flex", 0, {"web_search": 1}),
    ),
    (
        RESPONSES,
        responses.response(*ITEMS, service_tier="priority"),
        named([{"type": "response.completed", "response": responses.response(*ITEMS, service_tier="priority")}]),
        *("priority", 0, {"web_search": 1, "code_interpreter": 1}),
    ),
    (
        MESSAGES,
        messages.message(RUN, usage=USAGE),
        named([messages.START, *messages.call(0, RUN, "{}"), *messages.end("end_turn", **USAGE)]),  # type: ignore[arg-type]
        *("priority", 60, {"web_search": 2, "code_execution": 1}),
    ),
    (GEMINI, GROUNDED, event(GROUNDED), "flex", 0, {"google_search": 2, "google_maps": 1}),
]


@pytest.mark.parametrize(
    ("api", "body", "stream", "tier", "hour", "tools"), CASES, ids=lambda one: getattr(one, "name", "")
)
def test_what_is_charged_beside_tokens(
    api: Api, body: Json, stream: bytes, tier: str, hour: int, tools: dict[str, int]
) -> None:
    for charges in (api.read_reply(body).charges, passed(api, stream, refusing())[1].reply.charges):
        assert (charges.tier, charges.hour_writes) == (tier, hour)
        assert {tool: count for tool, count in charges.tools.items() if count} == tools


@pytest.mark.parametrize("api", [CHAT, RESPONSES])
@pytest.mark.parametrize(
    ("more", "out"),
    [({"total": 110}, 10), ({"total": 150}, 50), ({"reasoning": 40}, 50), ({"reasoning": 4}, 10), ({"total": "x"}, 10)],
)
def test_reasoning_that_is_counted_elsewhere_is_output(api: Api, more: dict[str, int], out: int) -> None:
    names = ("prompt_tokens", "completion_tokens") if api is CHAT else ("input_tokens", "output_tokens")
    usage = {names[0]: 100, names[1]: 10, f"{names[1]}_details": {"reasoning_tokens": more.get("reasoning")}}
    usage["total_tokens"] = more.get("total")
    body = chat.completion({}, usage=usage) if api is CHAT else responses.response(usage=usage)
    assert api.read_reply(body).usage.tokens_out == out


def test_a_reply_without_any_of_it_has_no_charges() -> None:
    assert CHAT.read_reply(chat.completion({}, service_tier=None)).charges == Charges()
