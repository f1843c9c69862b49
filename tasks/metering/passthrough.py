"""Requests beside the metered ones: what is free passes, what costs is counted, the rest is refused."""

import json
import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from passgate.tasks.metering.ledger import RefusalError
from passgate.tasks.metering.relay import refused
from passgate.tasks.metering.requests import document_of, read_body, sent_headers
from passgate.tasks.metering.trial_meter import TrialMeter
from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.client import ProviderReply, Upstream, UpstreamError
from passgate.tasks.providers.exchange import ApiFormatError, ModelReply, ModelRequest

_EMBEDDINGS: Final = "embeddings"
# Some names of models have slashes. No segment begins with a dot, and a percent sign would be decoded once more.
_SEGMENT: Final = r"[A-Za-z0-9_:@+~=,-][A-Za-z0-9._:@+~=,-]*"
_MODELS: Final = {
    "openai": re.compile(rf"models(/{_SEGMENT})*"),
    "anthropic": re.compile(rf"v1/models(/{_SEGMENT})*"),
}
"""What may be read, by provider: the key opens more than a trial has to see."""


async def pass_on(request: Request, trial: TrialMeter, provider: str, upstream: Upstream, path: str) -> Response:
    """Answer a request that is no model call: lists of models and counting tokens are free, embeddings cost and are no
    step. `path` is decoded.
    """
    headers = sent_headers(request)
    query = request.scope["query_string"].decode("latin-1")
    where = f"{path}?{query}" if query else path
    try:
        match (request.method, provider, path):
            case ("GET" | "HEAD", _, _) if _MODELS[provider].fullmatch(path):
                return _returned(await upstream.get(where, headers, seconds=None))
            case ("POST", "anthropic", "v1/messages/count_tokens"):
                return _returned(await upstream.send(where, await read_body(request), headers, seconds=None))
            case ("POST", "openai", "embeddings"):
                return await _embedded(await read_body(request), headers, trial, upstream)
    except UpstreamError as error:
        return _error(503, "provider_unavailable", str(error))
    except ApiFormatError as error:
        return _error(400, "invalid_request_error", str(error))
    message = f"passgate passes on model calls, embeddings and lists of models, and not {request.method} {path}"
    return _error(404, "not_metered", message)


async def _embedded(content: bytes, headers: dict[str, str], trial: TrialMeter, upstream: Upstream) -> Response:
    try:
        asked = str(document_of(content)["model"])
    except KeyError:
        raise ApiFormatError("the request names no model") from None
    request = ModelRequest(asked, False, 0, (), (), False, len(content))
    try:
        call = await trial.begin(request, asked, is_step=False)
    except RefusalError as refusal:
        return _error(400, refusal.code, str(refusal))
    try:
        answer = await upstream.send(_EMBEDDINGS, content, headers, seconds=None, progress=call.progress)
    except UpstreamError as error:
        call.failed(str(error), error)
        raise
    if answer.status >= 400:
        refused(call, upstream, answer.status, answer.body)
    else:
        call.answered(ModelReply(usage=_usage(answer.document)))
    return _returned(answer)


def _usage(document: object) -> Usage:
    usage = document.get("usage") if isinstance(document, dict) else None
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return Usage(tokens_in=tokens, tokens_out=0) if isinstance(tokens, int) and tokens >= 0 else Usage()


def _returned(answer: ProviderReply) -> Response:
    return Response(answer.body, answer.status, {"content-type": answer.headers.get("content-type", "text/plain")})


def _error(status: int, code: str, message: str) -> Response:
    # The shape that OpenAI's and Anthropic's client libraries both find a message in.
    body = {"type": "error", "error": {"type": code, "code": code, "message": message}}
    return Response(json.dumps(body), status, {"content-type": "application/json", "x-should-retry": "false"})
