"""Whose doing a refusal is: the request's, or that of the account, a filter or the region."""

import json

import pytest

from passgate.tasks.providers.refusals import Refusal

ASKED = "Why is my credit balance low? Is it a billing question or one of quota? Access denied, says the page."
REQUEST = json.dumps({"model": "m", "messages": [{"role": "user", "content": ASKED}], "teams": ["billing", "quota"]})


def openai(message: str, code: str | None = None, kind: str = "invalid_request_error") -> bytes:
    return json.dumps({"error": {"message": message, "type": kind, "code": code, "param": None}}).encode()


def anthropic(message: str, kind: str = "invalid_request_error") -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, anthropic("Your credit balance is too low to access the API. Please go to Plans & Billing.")),
        (400, anthropic("You have reached your specified API usage limits. You will regain access on 2026-12-01.")),
        (400, anthropic("This organization has been disabled.")),
        (400, openai("The response was filtered due to Azure's content management policy.", "content_filter")),
        (400, openai("Invalid prompt: your prompt was flagged as violating our usage policy.", "invalid_prompt")),
        (400, b'[{"error": {"code": 400, "message": "User location is not supported for the API use."}}]'),
        (400, b'{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}'),
        (400, openai("Access denied, please make sure your account is in good standing.", "Arrearage")),
        (400, openai("Output data may contain inappropriate content.", "data_inspection_failed")),
        (400, openai("Content Exists Risk")),
        (403, openai("Country, region, or territory not supported", "unsupported_country_region_territory")),
        (403, b"<html>Forbidden</html>"),
        (404, openai("The project proj_1 has been archived.")),
        (400, b'{"error": {"code": 400, "message": "Please enable billing on project #1.", "status": "X"}}'),
        (400, openai("Your organization must be verified to stream this model.", "unsupported_value")),
        (400, openai("The model `m` requires terms acceptance.", "model_terms_required")),
        (400, openai("Budget has been exceeded! Max budget: 10.0", "400", "budget_exceeded")),
        (400, openai("Key is not allowed to access model", "401", "key_model_access_denied")),
        (400, openai("The security token included in the request is expired", kind="ExpiredTokenException")),
        (400, '{"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含敏感内容"}}'.encode()),
        (400, openai("内容\ud800敏感", "1301")),
        (400, anthropic("This credential is only authorized for use with another client.")),
        (404, openai("No endpoints found matching your data policy.")),
        (401, openai("Incorrect API key provided.", "invalid_api_key")),
        (402, openai("Insufficient Balance")),
        (500, openai("The server had an error", kind="server_error")),
    ],
    ids=str,
)
def test_what_the_account_the_filter_or_the_server_does_is_not_of_the_request(status: int, body: bytes) -> None:
    assert not Refusal.from_reply(status, body).blames_request(REQUEST)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, openai("This model's maximum context length is 128000 tokens.", "context_length_exceeded")),
        (400, anthropic("prompt is too long: 210000 tokens > 200000 maximum")),
        (400, anthropic("messages.1.content: Why is my credit balance low? is no list of blocks")),
        (400, openai("Invalid value: 'billing'. Supported values are 'on' and 'off'.")),
        (400, anthropic("teams.1: quota")),
        (404, openai("The model `m2` does not exist or you do not have access to it.", "model_not_found")),
        (404, anthropic("model: claude-9", "not_found_error")),
        (413, anthropic("Request exceeds the maximum size", "request_too_large")),
        (422, b'{"detail": [{"loc": ["body", "messages"], "msg": "Field required"}]}'),
        (400, b"Bad Request"),
        (400, b"[" * 100_000),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_the_request_provokes_is_of_the_request(status: int, body: bytes) -> None:
    assert Refusal.from_reply(status, body).blames_request(REQUEST)


@pytest.mark.parametrize("text", ["The model quota does not exist.", "model: quota", "Unknown model 'quota'"])
def test_the_name_of_a_model_that_a_provider_repeats_blames_no_account(text: str) -> None:
    assert Refusal.from_reply(400, openai(text)).blames_request(json.dumps({"model": "quota"}))


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade.", None),
        ("Billing hard limit has been reached", "billing_hard_limit_reached"),
        ("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota"),
        ("The response was filtered by the content filter.", "content_filter"),
    ],
)
def test_an_agent_that_speaks_of_money_has_not_provoked_what_the_account_lacks(message: str, code: str | None) -> None:
    said = "A customer asks about billing, his quota, a content filter and why his credit balance is low. Help him."
    request = json.dumps({"model": "m", "messages": [{"role": "user", "content": said}]})
    assert not Refusal.from_reply(400, openai(message, code)).blames_request(request)
    for quoted in (f"messages[0].content: {said} is no list", "unknown value: 'billing'", "tool `quota` is not known"):
        assert Refusal.from_reply(400, openai(quoted)).blames_request(request)


@pytest.mark.parametrize(
    ("error", "is_of_the_request"),
    [
        ({"code": "context_length_exceeded", "message": "Your input exceeds the context window."}, True),
        ({"code": 400, "message": "messages: is missing"}, True),
        ({"code": 502, "message": "the upstream provider closed the connection"}, False),
        ({"code": 403, "message": "Your input was flagged"}, False),
        ({"type": "overloaded_error", "message": "Overloaded"}, False),
        ({"code": "content_filter", "message": "the model was stopped"}, False),
        ("it broke", False),
        (None, False),
    ],
)
def test_errors_inside_replies_are_told_apart_by_their_codes(error: object, is_of_the_request: bool) -> None:
    assert Refusal.from_error(error).blames_request(REQUEST) is is_of_the_request


@pytest.mark.parametrize(
    ("body", "lacks_money"),
    [
        (openai("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), True),
        (openai("Your account is suspended due to insufficient balance", kind="exceeded_current_quota_error"), True),
        (openai("Your team has used all available credits or reached its monthly spending limit"), True),
        (openai("Rate limit reached for requests", "rate_limit_exceeded", "requests"), False),
        (b'{"error": {"status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota"}}', False),
    ],
)
def test_an_account_without_money_is_told_from_one_that_asks_too_often(body: bytes, lacks_money: bool) -> None:
    assert Refusal.from_reply(429, body).lacks_money is lacks_money
