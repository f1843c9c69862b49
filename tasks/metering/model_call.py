"""One model call of an agent: what it asks in, and out the provider's answer or the error that says why there is none.

The built-in agent's calls begin here. Those of other agents come through the meter's server, by `relay`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.access import ModelAnswer
from passgate.tasks.metering.ledger import RefusalError
from passgate.tasks.metering.trial_meter import MeteredCall, TrialMeter
from passgate.tasks.metering.unpacking import READ_ENCODINGS, UnknownEncodingError
from passgate.tasks.model.quotes import UNMASKED, quote, raw
from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.client import Upstream, UpstreamError
from passgate.tasks.providers.exchange import ApiFormatError, ReplyError
from passgate.tasks.providers.refusals import Refusal

CLIENT_ERROR: Final = 400
_UNAUTHORISED: Final = 401
_UNSUPPORTED_MEDIA_TYPE: Final = 415
_PASSED_HEADERS: Final = ("content-type", "request-id", "x-request-id")
# No client library tries a refusal of the meter again: it would come to the same.
_OWN_HEADERS: Final[Mapping[str, str]] = {"content-type": "application/json", "x-should-retry": "false"}
_EXCERPT: Final = 300  # Characters of a refusal


@dataclass(frozen=True, slots=True)
class Route:
    """Where a call goes."""

    trial: TrialMeter
    api: Api
    upstream: Upstream
    user_model: str | None  # The one that the user names, in place of what the agent asks for

    @property
    def model(self) -> str | None:
        """The model that a call is made with, whatever the agent asks for."""
        return self.user_model if self.api.is_step else None


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """A call that the trial's budgets let pass, and what is sent for it."""

    call: MeteredCall
    stream: bool
    body: dict[str, Any]  # As the agent sent it
    content: bytes  # As the provider gets it
    changed: frozenset[str]  # The keys that passgate changed or added
    plain: bytes | None = None  # What is sent when the provider does not know a key that was added; `None` without one

    @property
    def text(self) -> str:
        """What the agent asks, as text."""
        return json.dumps(self.body, ensure_ascii=False)


async def complete(route: Route, content: bytes, headers: Mapping[str, str]) -> ModelAnswer:
    """Answer a request for a whole reply; `headers` are those of the caller."""
    admitted = await admit(route, content)
    return admitted if isinstance(admitted, ModelAnswer) else await whole_reply(route, admitted, headers)


async def admit(route: Route, content: bytes) -> AdmittedRequest | ModelAnswer:
    """Admit a call once there is room for it. Return the answer for the agent if it cannot be admitted."""
    try:
        body = parse_object(content)
        asked = route.api.read_request(body)
    except ApiFormatError as error:
        return refuse_unreadable(route, error)
    try:
        call = await route.trial.begin(asked, route.model or asked.model, is_step=route.api.is_step)
    except RefusalError as refusal:
        return error_answer(route.api, CLIENT_ERROR, refusal.code, str(refusal))
    least = route.api.prepare(body, model=route.model, max_tokens_out=call.admission.max_tokens_out)
    sent = least if route.api.name in route.upstream.without_usage else route.api.asking_for_usage(least)
    # Most calls are sent as they came: writing the JSON anew would cost as much as reading it.
    return AdmittedRequest(
        call,
        asked.stream,
        body,
        content if sent is body else json_bytes(sent),
        changed=frozenset(key for key in sent if sent[key] is not body.get(key)),
        plain=None if sent is least else content if least is body else json_bytes(least),
    )


async def whole_reply(route: Route, admitted: AdmittedRequest, headers: Mapping[str, str]) -> ModelAnswer:
    """Return the reply to a call that is not streamed, without the tool calls that the trial may not make."""
    call = admitted.call
    try:
        target = route.api.target(route.model)
        answer = await route.upstream.send(target, admitted.content, headers, seconds=None, progress=call.progress)
        if answer.status >= CLIENT_ERROR:
            record_provider_refusal(route, admitted, Refusal.from_reply(answer.status, answer.body))
            return ModelAnswer(answer.status, answer.body, agent_headers(answer.headers))
        reply = route.api.read_reply(answer.document)
        route.upstream.has_answered.add(route.api.name)
        refused = {asked.call_id for asked in reply.calls if call.withhold(asked)}
        call.answer(reply)
        body = json_bytes(route.api.remove_calls(answer.document, refused)) if refused else answer.body
        return ModelAnswer(answer.status, body, agent_headers(answer.headers))
    except (UpstreamError, ApiFormatError) as error:
        return answer_failure(route, admitted, error)
    finally:
        call.abandon()


def refuse_unreadable(route: Route, error: ApiFormatError) -> ModelAnswer:
    """Return the answer to a request that cannot be read."""
    route.trial.was_asked = True
    if isinstance(error, UnknownEncodingError):
        route.trial.ledger.unanswered(MeasurementError(str(error)))
        answer = error_answer(route.api, _UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding", str(error))
        return replace(answer, headers={**answer.headers, "accept-encoding": READ_ENCODINGS})
    route.trial.ledger.unanswered(str(error))
    return error_answer(route.api, CLIENT_ERROR, "invalid_request_error", str(error))


def answer_failure(route: Route, admitted: AdmittedRequest, error: UpstreamError | ApiFormatError) -> ModelAnswer:
    """Return the answer to a call whose provider is unavailable, or replies with an error or something unreadable."""
    if isinstance(error, ReplyError):
        message = record_broken_reply(route, admitted, error)
        if error.refusal.blames_request(admitted.text):
            return error_answer(route.api, CLIENT_ERROR, "invalid_request_error", message)
        return error_answer(route.api, 503, "provider_unavailable", message)
    if isinstance(error, ApiFormatError):
        message = f"{route.upstream.name} answered what cannot be read: {error}"
        admitted.call.fail(MeasurementError(message, transient=True))
    else:
        # What a provider says is the agent's to know.
        message = UNMASKED.render(error.message)
        admitted.call.fail(error)
    return error_answer(route.api, 503, "provider_unavailable", message)


def record_provider_refusal(route: Route, admitted: AdmittedRequest, refusal: Refusal) -> None:
    """Record that a provider refused a call, and whether that is the agent's fault."""
    if refusal.status == _UNAUTHORISED and route.upstream.missing_key:
        admitted.call.fail(MeasurementError(f"{route.upstream.missing_key} is not set"))
        return
    what = f"{route.upstream.name} answered {refusal.status}: "
    if _blames_agent(route, admitted, refusal):
        admitted.call.fail(f"{what}{refusal.text}")
    else:
        admitted.call.fail(MeasurementError(raw(what, quote(refusal.text, _EXCERPT))))


def record_broken_reply(route: Route, admitted: AdmittedRequest, error: ReplyError) -> str:
    """Record that a reply holds an error. Return the message for the agent."""
    message = f"{route.upstream.name} answered with an error in its reply: {error}"
    if _blames_agent(route, admitted, error.refusal):
        admitted.call.fail(message)
    else:
        passes = not error.refusal.blames_account(admitted.text)
        admitted.call.fail(MeasurementError(raw(quote(message, _EXCERPT)), transient=passes))
    return message


def _blames_agent(route: Route, admitted: AdmittedRequest, refusal: Refusal) -> bool:
    """Return whether the agent's own request provokes a refusal, and not the account, a filter, a key that passgate
    changed, a model that the user names, or an address that is wrong for every request.
    """
    if not refusal.blames_request(admitted.text) or refusal.names(admitted.changed - {"model"}):
        return False
    if refusal.names_model:
        return route.model is None
    return not refusal.is_not_found or route.api.name in route.upstream.has_answered


def error_answer(api: Api | None, status: int, code: str, message: str) -> ModelAnswer:
    """Return an error of the meter's own, which no client library retries.

    Without an API it has a shape in which OpenAI's and Anthropic's client libraries both find a message.
    """
    anyones = {"type": "error", "error": {"type": code, "code": code, "message": message}}
    return ModelAnswer(status, json_bytes(api.error_body(status, code, message) if api else anyones), _OWN_HEADERS)


def agent_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return those of a provider's headers that the agent gets."""
    return {name: headers[name] for name in _PASSED_HEADERS if name in headers}


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """Return JSON that keeps everything JSON may hold: numbers of any size, halves of characters."""
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def parse_object(content: bytes) -> dict[str, Any]:
    """Parse the JSON object of a body. Raises `ApiFormatError`."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ApiFormatError(f"the request is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ApiFormatError("the request is not a JSON object")
    return body
