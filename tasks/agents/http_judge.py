"""The judge as a chat model behind an endpoint, whose API it speaks."""

import json
import re
from collections.abc import Collection
from typing import Any, Final

from passgate.tasks.errors import MeasurementError, Quote
from passgate.tasks.model.grade import JudgeReply, JudgeRequest
from passgate.tasks.model.policy import JudgePolicy
from passgate.tasks.model.quotes import quote, raw
from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.client import ProviderReply, Upstream
from passgate.tasks.providers.exchange import ApiFormatError

_CLIENT_ERROR: Final = 400
_NO_SUCH_PARAMETER: Final = frozenset({400, 404, 422})  # How endpoints answer that do not know a key of the request
_SILENCES: Final = 5  # All attempts of one question may take so many times what the model may be silent
_EXCERPT: Final = 300
# What the templates of local models read as the end of a message or the beginning of another one's.
_CONTROL_TOKEN: Final = re.compile(
    r"[<\[](?=[|\N{FULLWIDTH VERTICAL LINE}]|<?/?SYS>>"
    r"|/?(?:s|bos|eos|start_of_turn|end_of_turn|INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)[>\]])"
)


class HttpJudge:
    """A chat model."""

    def __init__(self, upstream: Upstream, api: Api, model: str, policy: JudgePolicy) -> None:
        """Take over the upstream, which `close` closes. `policy` says how often and how the model is asked."""
        self._api = api
        self._upstream = upstream
        self.name = model
        self.votes = policy.votes
        self._temperature = policy.temperature
        self._seconds = _SILENCES * policy.timeout_seconds
        self._refused = frozenset[str]()  # Keys of requests that the endpoint does not take

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        """Ask the model. An endpoint that refuses an optional key of the request, the schema of the reply or the
        temperature, is asked once more without it, and never again with it.
        """
        left_out = set(self._refused)
        answer = await self._ask(request, left_out)
        while answer.status in _NO_SUCH_PARAMETER and (optional := [*self._optional(request, left_out)]):
            said = answer.body.decode("utf-8", "replace")
            left_out.add(next((name for name in optional if name in said), optional[0]))
            answer = await self._ask(request, left_out)
            if answer.status < _CLIENT_ERROR:
                self._refused = frozenset(left_out)
        if answer.status >= _CLIENT_ERROR:
            what = f"the judge at {self._upstream.name} answered {answer.status}: "
            raise MeasurementError(raw(what, _excerpt(answer)))
        try:
            reply = self._api.read_reply(answer.document)
        except ApiFormatError as error:
            message = f"the judge at {self._upstream.name} did not answer as {self._api.name} does: {error}"
            raise MeasurementError(raw(f"{message}. It answered ", _excerpt(answer))) from error
        return JudgeReply(text=reply.text, usage=reply.usage)

    async def close(self) -> None:
        await self._upstream.close()

    def _optional(self, request: JudgeRequest, left_out: Collection[str]) -> dict[str, Any]:
        """Return the keys of a request that an endpoint may not know, in the order in which they are left out."""
        keys = {self._api.schema_key: request.reply_schema, "temperature": self._temperature}
        return {name: value for name, value in keys.items() if value is not None and name not in left_out}

    async def _ask(self, request: JudgeRequest, left_out: Collection[str]) -> ProviderReply:
        optional = self._optional(request, left_out)
        body = self._api.question(
            self.name,
            [(said.role, disarm(said.content)) for said in request.messages],
            schema=optional.get(self._api.schema_key),
            temperature=optional.get("temperature"),
        )
        return await self._upstream.send(self._api.target(), json.dumps(body).encode("ascii"), seconds=self._seconds)


def disarm(text: str) -> str:
    """Return a text that no chat template reads as more than text: with a blank in every control token."""
    return _CONTROL_TOKEN.sub(lambda match: f"{match[0]} ", text)


def _excerpt(answer: ProviderReply) -> Quote:
    return quote(" ".join(answer.body.decode("utf-8", "replace").split()), _EXCERPT)
