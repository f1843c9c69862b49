"""A JSON endpoint as an agent: `http:URL`, one request per turn."""  # noqa: A005 - always imported absolutely

import asyncio
import json
import random
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final, Self

import httpx
from pydantic import ValidationError

from passgate.tasks.agents.http_templates import HeaderTemplates, check_template, fill, placeholder_values
from passgate.tasks.agents.interface import PROBE_SECONDS, Agent, AgentSandbox, Attempt, symptom
from passgate.tasks.agents.transcripts import as_text, excerpt, first_problem, no_answer, read_json, read_transcript
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.files.proxies import find_proxy, via_proxy
from passgate.tasks.metering.access import ModelAccess
from passgate.tasks.model.agent import AgentSpec, HttpOptions
from passgate.tasks.model.checks import State, Symptom
from passgate.tasks.model.json_values import MISSING, at_path
from passgate.tasks.model.quotes import quote, raw
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript, Usage
from passgate.tasks.providers.retries import RETRY_POLICY, TRY_AGAIN, Breaker, RetryPolicy, retry_after

_NOT_THE_AGENTS_FAULT: Final = frozenset({401, 402, 403, 404, 407, 408, 425, 429})
_EXCERPT: Final = 300  # Characters of a refusal
MAX_REPLY_BYTES: Final = 16 * 1024 * 1024
_DECLINED: Final = frozenset({429, 503})
_PLAIN: Final = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}


class ReplyTooLargeError(Exception):
    """A reply that is larger than passgate reads."""


@dataclass(frozen=True)
class Reply:
    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@cache
def _tls() -> ssl.SSLContext:
    """25 ms, so once for all requests and batches of a process."""
    return httpx.create_ssl_context()


class AgentEndpoint:
    """Sends JSON and returns the reply.

    An agent that is asked twice may act twice. So a request is sent again only if it was surely not accepted: there was
    no connection, or the endpoint declined it with 429 or 503 and a Retry-After.
    """

    def __init__(
        self, method: str, url: str, *, silence_seconds: float, retry_policy: RetryPolicy = RETRY_POLICY
    ) -> None:
        self.url = url
        self._method = method
        self._silence = silence_seconds
        self._retry_policy = retry_policy
        self._breaker = Breaker(retry_policy)
        self._tls = _tls()
        self._uses_proxies = find_proxy(url) is not None

    async def ask(self, content: bytes, headers: Mapping[str, str], *, seconds: float) -> Reply:
        """Return the reply to one request, in at most `seconds`.

        Raises `TimeoutError` if the agent took longer or was silent for too long, `ReplyTooLargeError`, and
        `MeasurementError` if it could not be reached or the connection broke.
        """
        policy = self._retry_policy
        deadline = time.monotonic() + seconds
        for attempt in count(1):
            if not self._breaker.admits():
                raise MeasurementError(f"the agent at {self.url} is not asked: {self._breaker.reason}", transient=True)
            outcome = await self._once(content, headers, seconds=deadline - time.monotonic())
            asked = 0.0
            if isinstance(outcome, Reply):
                wish = retry_after(outcome.headers, datetime.now(UTC)) if outcome.status in _DECLINED else None
                if wish is None or wish > policy.longest_retry_after:
                    return outcome
                asked = wish
            pause = max(policy.pause(attempt, random.random()), asked)  # noqa: S311 - no secret
            if attempt >= policy.attempts or time.monotonic() + pause >= deadline:
                break
            await asyncio.sleep(pause)
        if isinstance(outcome, Reply):
            return outcome
        why = f"{outcome!r}{via_proxy(self.url)}"
        raise MeasurementError(f"the agent at {self.url} cannot be reached: {why}", transient=True) from outcome

    async def _once(
        self, content: bytes, headers: Mapping[str, str], *, seconds: float
    ) -> Reply | httpx.TransportError:
        """Return the reply, or why there was no connection."""
        # A connection that takes half of the time is not the agent's slowness.
        limits = httpx.Timeout(self._silence, connect=min(self._retry_policy.connect_seconds, seconds / 2))
        client = httpx.AsyncClient(verify=self._tls, timeout=limits, headers=_PLAIN, trust_env=self._uses_proxies)
        body = bytearray()
        try:
            async with (
                asyncio.timeout(seconds),
                client,
                client.stream(self._method, self.url, content=content, headers=headers) as response,
            ):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_REPLY_BYTES:
                        raise ReplyTooLargeError(f"the reply is larger than {MAX_REPLY_BYTES // 1024 // 1024} MiB")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            self._breaker.record_failure(repr(error))
            return error
        except httpx.ReadTimeout as error:
            raise TimeoutError(f"{self.url} was silent for {self._silence:g} s") from error
        except TimeoutError as error:
            raise TimeoutError(f"{self.url} did not answer in time") from error
        except httpx.HTTPError as error:
            self._breaker.record_failure(repr(error))
            why = f"{error!r}{via_proxy(self.url)}"
            raise MeasurementError(f"the connection to {self.url} broke: {why}", transient=True) from error
        self._breaker.record_success()
        return Reply(response.status_code, bytes(body), dict(response.headers))


@dataclass(frozen=True)
class HttpAgent(Agent):
    """Asks an endpoint with the request of its options and reads the reply as they say."""

    endpoint: AgentEndpoint
    options: HttpOptions
    headers: HeaderTemplates

    @classmethod
    def from_spec(cls, spec: AgentSpec, suites_folder: Path) -> Self:
        """Return the agent. Raises `UsageError` for an address, a template or a header that cannot be used."""
        options = spec.http
        check_template(options.request, "http.request")
        if options.complete and options.tool_calls is None:
            raise UsageError("http.complete says that `tool_calls` lists every call: say where with http.tool_calls")
        try:
            url = httpx.URL(spec.target)
        except httpx.InvalidURL as error:
            raise UsageError(f"the agent http:{spec.target} is not a URL: {error}") from error
        if url.scheme not in {"http", "https"} or not url.host:
            raise UsageError(f"the agent http:{spec.target} needs an address like http:https://host/path")
        if url.userinfo:
            remedy = "under http.headers, as in `Authorization: 'Basic ${{ NAME }}'`"
            raise UsageError(f"the address of the agent at {url.host} holds a user or a password: put them {remedy}")
        endpoint = AgentEndpoint(options.method, spec.target, silence_seconds=spec.timeout_seconds)
        return cls(endpoint, options, HeaderTemplates.from_templates(options.headers))

    @classmethod
    async def probe(cls, spec: AgentSpec) -> list[Symptom]:
        """Find out whether anything answers at the agent's address. Any answer to a GET will do."""
        address = spec.target
        try:
            async with httpx.AsyncClient(timeout=PROBE_SECONDS) as client, client.stream("GET", address) as answer:
                found = f"{address} is there: it answers {answer.status_code} to a GET"
        except httpx.HTTPError as error:
            trouble = f"{address} does not answer: {type(error).__name__}: {error}".rstrip(": ")
            return [symptom(spec, "host", State.FAILED, trouble, "start it, or mend the URL")]
        return [symptom(spec, "host", State.OK, found)]

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        """Raise `MeasurementError` if the endpoint cannot be reached, is overloaded or broken, or does not let passgate
        in.
        """
        values = placeholder_values(attempt, access)
        body = json.dumps(fill(self.options.request, values), default=str).encode()
        try:
            answer = await self.endpoint.ask(body, self.headers.fill(values), seconds=seconds)
        except TimeoutError as error:
            return no_answer(EndReason.TIMED_OUT, str(error))
        except ReplyTooLargeError as error:
            return no_answer(EndReason.OUTPUT_LIMIT, str(error))
        status, said = answer.status, excerpt(answer.content)
        if not httpx.codes.is_success(status):
            what = f"{self.endpoint.url} answered {status}: "
            if status >= 500 or status in _NOT_THE_AGENTS_FAULT or httpx.codes.is_redirect(status):
                raise MeasurementError(raw(what, quote(said, _EXCERPT)), transient=status >= 500 or status in TRY_AGAIN)
            return no_answer(EndReason.CRASHED, f"{what}{said}")
        try:
            return read_transcript(read_reply(answer.content, self.options))
        except ValueError as error:
            return no_answer(EndReason.CRASHED, f"its reply cannot be used: {error}. It said: {said}")


def read_reply(content: bytes, options: HttpOptions) -> Transcript:
    """Return one turn of the agent. Raises `ValueError`, which says what is wrong, for a reply of another shape."""
    document = read_json(content)
    output = at_path(document, options.output)
    if output is MISSING or output is None:
        raise ValueError(f"it has no `{options.output}`")
    path = options.tool_calls
    listed = None if path is None else at_path(document, path)
    if listed is None or listed is MISSING:
        listed = []
    if not isinstance(listed, list):
        raise ValueError(f"`{path}` is not a list")  # noqa: TRY004 - the type of a document, not of an argument
    calls = tuple(_call(item, f"{path}.{index}") for index, item in enumerate(listed))
    working = (Message(role="assistant", tool_calls=calls),) if calls else ()
    paths = {name: path for name in ("tokens_in", "tokens_out", "cost_usd") if (path := getattr(options, name))}
    found = {name: value for name, path in paths.items() if (value := at_path(document, path)) is not MISSING}
    try:
        usage = Usage.model_validate(found)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise ValueError(f"`{paths[name]}` cannot be used: {first_problem(error)}") from None
    return Transcript(
        messages=(*working, Message(role="assistant", content=as_text(output))),
        output=as_text(output),
        usage=usage,
        complete=options.complete,
    )


def _call(item: Any, where: str) -> ToolCall:
    if not isinstance(item, dict):
        raise ValueError(f"`{where}` is not an object")  # noqa: TRY004
    arguments = item.get("arguments", item.get("input")) or {}
    call = {
        "tool": item.get("tool", item.get("name")),
        "arguments": read_json(arguments) if isinstance(arguments, str) else arguments,
        "result": item.get("result"),
        "is_error": item.get("is_error", False),
        "duration_ms": item.get("duration_ms"),
    }
    try:
        return ToolCall.model_validate(call)
    except ValidationError as error:
        raise ValueError(f"`{where}` cannot be used: {first_problem(error)}") from None
