"""One model call of an agent: what it asks in, and out the provider's answer or the error that says why there is none.

The built-in agent's calls begin here. Those of other agents come through the meter's server, by `relay`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.access import ModelAnswer
from passgate.tasks.metering.ledger import RefusalError
from passgate.tasks.metering.trial_meter import MeteredCall, TrialMeter
from passgate.tasks.model.masker import UNMASKED
from passgate.tasks.model.quotes import quote, raw
from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.client import Upstream, UpstreamError
from passgate.tasks.providers.exchange import ApiFormatError

CLIENT_ERROR: Final = 400
_NOT_THE_AGENTS_FAULT: Final = frozenset({401, 402, 403, 404})
_PASSED_HEADERS: Final = ("content-type", "request-id", "x-request-id")
# No client library tries a refusal of the meter again: it would come to the same.
_OWN_HEADERS: Final[Mapping[str, str]] = {"content-type": "application/json", "x-should-retry": "false"}
_EXCERPT: Final = 300  # Characters of a refusal
_MOST_READ: Final = 16_000  # Bytes of it, of which secrets are masked before the rest is cut off


@dataclass(frozen=True, slots=True)
class Route:
    """Where a call goes."""

    trial: TrialMeter
    api: Api
    upstream: Upstream
    model: str | None  # The model in place of the one that the agent asks for


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """A call that the trial's budgets let pass, and what is sent for it."""

    call: MeteredCall
    stream: bool
    body: dict[str, Any]  # As the agent sent it
    content: bytes  # As the provider gets it


async def complete(route: Route, content: bytes, headers: Mapping[str, str]) -> ModelAnswer:
    """Answer a request for a whole reply, with `headers` those of whoever asks."""
    admitted = await admit(route, content)
    return admitted if isinstance(admitted, ModelAnswer) else await whole_reply(route, admitted, headers)


async def admit(route: Route, content: bytes) -> AdmittedRequest | ModelAnswer:
    """Let a call pass once there is room for it; where it cannot, what the agent is answered."""
    try:
        body = document_of(content)
        asked = route.api.read_request(body)
    except ApiFormatError as error:
        return unreadable(route, error)
    try:
        call = await route.trial.begin(asked, route.model or asked.model)
    except RefusalError as refusal:
        return error_answer(route.api, CLIENT_ERROR, refusal.code, str(refusal))
    sent = route.api.prepared(body, model=route.model, max_tokens_out=call.admission.max_tokens_out)
    # Most calls are sent as they came: writing the JSON anew would cost as much as reading it.
    return AdmittedRequest(call, asked.stream, body, content if sent is body else json_bytes(sent))


async def whole_reply(route: Route, admitted: AdmittedRequest, headers: Mapping[str, str]) -> ModelAnswer:
    """The reply to a call that is not streamed, without the tool calls that the trial may not make."""
    call = admitted.call
    try:
        answer = await route.upstream.send(
            route.api.path, admitted.content, headers, seconds=None, progress=call.progress
        )
        if answer.status >= CLIENT_ERROR:
            refused_by_provider(call, route.upstream, answer.status, answer.body)
            return ModelAnswer(answer.status, answer.body, passed_headers(answer.headers))
        reply = route.api.read_reply(answer.document)
        refused = {asked.call_id for asked in reply.calls if call.withheld(asked)}
        call.answered(reply)
        body = json_bytes(route.api.without_calls(answer.document, refused)) if refused else answer.body
        return ModelAnswer(answer.status, body, passed_headers(answer.headers))
    except (UpstreamError, ApiFormatError) as error:
        return unanswered(route, call, error)
    finally:
        call.abandon()


def unreadable(route: Route, error: ApiFormatError) -> ModelAnswer:
    """What an agent is told whose request cannot be read."""
    route.trial.ledger.unanswered(str(error))
    return error_answer(route.api, CLIENT_ERROR, "invalid_request_error", str(error))


def unanswered(route: Route, call: MeteredCall, error: UpstreamError | ApiFormatError) -> ModelAnswer:
    """What the agent is told when the provider does not answer, or with something that cannot be read."""
    if isinstance(error, ApiFormatError):
        message = f"{route.upstream.name} answered what cannot be read: {error}"
        call.failed(MeasurementError(message, transient=True))
    else:
        # What a provider says is the agent's to know.
        message = UNMASKED.render(error.message)
        call.failed(error)
    return error_answer(route.api, 503, "provider_unavailable", message)


def refused_by_provider(call: MeteredCall, upstream: Upstream, status: int, body: bytes) -> None:
    """Note that a provider has refused a call; its status says whether that is the agent's fault."""
    said = body[:_MOST_READ].decode("utf-8", "replace")
    what = f"{upstream.name} answered {status}: "
    is_the_agents_fault = status not in _NOT_THE_AGENTS_FAULT
    call.failed(f"{what}{said}" if is_the_agents_fault else MeasurementError(raw(what, quote(said, _EXCERPT))))


def error_answer(api: Api | None, status: int, code: str, message: str) -> ModelAnswer:
    """An error of the meter's own, which no client library tries again.

    Without an API it has the shape that OpenAI's and Anthropic's client libraries both find a message in.
    """
    anyones = {"type": "error", "error": {"type": code, "code": code, "message": message}}
    return ModelAnswer(status, json_bytes(api.error_body(status, code, message) if api else anyones), _OWN_HEADERS)


def passed_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Of a provider's headers those that the agent gets."""
    return {name: headers[name] for name in _PASSED_HEADERS if name in headers}


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """JSON in which whatever JSON may hold stays as it was: numbers of any size, halves of characters."""
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def document_of(content: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises `ApiFormatError`."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ApiFormatError(f"the request is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ApiFormatError("the request is not a JSON object")
    return body
