"""A JSON endpoint as an agent: `http:URL`, one request per turn."""

import json
from typing import Final, Self

import httpx

from passgate.tasks.agents.foreign import excerpt
from passgate.tasks.agents.http.endpoint import Endpoint, TooLargeError
from passgate.tasks.agents.http.headers import HeaderTemplates
from passgate.tasks.agents.http.reply import read_reply
from passgate.tasks.agents.http.templates import check_template, filled, values_of
from passgate.tasks.agents.interface import Agent, AgentSandbox, Attempt
from passgate.tasks.agents.transcripts import transcript_of
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.metering.access import ModelAccess
from passgate.tasks.model.agent import AgentSpec, HttpOptions
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript
from passgate.tasks.providers.faults import TRY_AGAIN

_NOT_THE_AGENTS_FAULT: Final = frozenset({401, 402, 403, 404, 407, 408, 425, 429})


class HttpAgent(Agent):
    """Asks an endpoint with the request of its options and reads the reply as they say."""

    def __init__(self, endpoint: Endpoint, options: HttpOptions, headers: HeaderTemplates) -> None:
        self._endpoint = endpoint
        self._options = options
        self._headers = headers

    @classmethod
    def from_spec(cls, spec: AgentSpec) -> Self:
        """Raises `UsageError` for an address, a template or a header that cannot be used."""
        options = spec.http
        check_template(options.request, "http.request")
        if options.complete and options.tool_calls is None:
            raise UsageError("http.complete says that `tool_calls` lists every call: say where with http.tool_calls")
        endpoint = Endpoint(options.method, _address(spec.target), silence_seconds=spec.timeout_seconds)
        return cls(endpoint, options, HeaderTemplates.checked(options.headers))

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        """See `Agent.run`. Raises `MeasurementError` when the endpoint cannot be reached, is overloaded or broken, or
        does not let passgate in.
        """
        values = values_of(attempt, access)
        body = json.dumps(filled(self._options.request, values), default=str).encode()
        try:
            answer = await self._endpoint.ask(body, self._headers.filled(values), seconds=seconds)
        except TimeoutError as error:
            return _ended(EndReason.TIMED_OUT, str(error))
        except TooLargeError as error:
            return _ended(EndReason.OUTPUT_LIMIT, str(error))
        if not httpx.codes.is_success(answer.status):
            return self._refused(answer.status, answer.content)
        try:
            return transcript_of(read_reply(answer.content, self._options))
        except ValueError as error:
            said = self._said(answer.content)
            return _ended(EndReason.CRASHED, f"its reply cannot be used: {error}. It said: {said}")

    def _refused(self, status: int, content: bytes) -> Transcript:
        said = f"{self._endpoint.url} answered {status}: {self._said(content)}"
        if status >= 500 or status in _NOT_THE_AGENTS_FAULT or httpx.codes.is_redirect(status):
            raise MeasurementError(said, transient=status >= 500 or status in TRY_AGAIN)
        return _ended(EndReason.CRASHED, said)

    def _said(self, content: bytes) -> str:
        return self._headers.masked(excerpt(content))


def _address(target: str) -> str:
    try:
        url = httpx.URL(target)
    except httpx.InvalidURL as error:
        raise UsageError(f"the agent http:{target} is not a URL: {error}") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise UsageError(f"the agent http:{target} needs an address like http:https://host/path")
    return target


def _ended(end: EndReason, detail: str) -> Transcript:
    return Transcript(complete=False, end=end, detail=detail)
