"""Who marks rubrics: a model behind an OpenAI-compatible endpoint, or replies recorded earlier."""

import os
from pathlib import Path
from typing import Any

import httpx
import yaml

from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.judge import Judge, JudgeRequest
from passgate.tasks.model.policy import JudgePolicy

SETTINGS = "judge.base_url and judge.model in gates.yaml, or PASSGATE_JUDGE_BASE_URL and PASSGATE_JUDGE_MODEL"
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_EXCERPT = 300


def make_judge(policy: JudgePolicy, suites_folder: Path) -> Judge | None:
    """The judge that is configured; `None` when there is none. Raises `UsageError` for half a configuration."""
    base_url = os.environ.get("PASSGATE_JUDGE_BASE_URL") or policy.base_url
    model = os.environ.get("PASSGATE_JUDGE_MODEL") or policy.model
    if bool(base_url) != bool(model):
        raise UsageError(f"the judge needs both a base URL and a model: set {SETTINGS}")
    if base_url and model:
        return HttpJudge(base_url, model, os.environ.get(policy.api_key_variable, ""), policy.timeout_seconds)
    if policy.recorded:
        return RecordedJudge.from_folder(suites_folder / policy.recorded)
    return None


class HttpJudge:
    """A chat model at `POST {base_url}/chat/completions`."""

    def __init__(self, base_url: str, model: str, api_key: str, seconds: float) -> None:
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._model = model
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._seconds = seconds
        self._tls = httpx.create_ssl_context()  # 25 ms, so once for all requests

    @property
    def name(self) -> str:
        return self._model

    async def reply(self, request: JudgeRequest) -> str:
        """See `Judge.reply`. Refused and broken connections, 429 and 5xx are transient."""
        body = {
            "model": self._model,
            "temperature": 0,
            "messages": [message.model_dump() for message in request.messages],
        }
        try:
            async with httpx.AsyncClient(headers=self._headers, timeout=self._seconds, verify=self._tls) as client:
                response = await client.post(self._url, json=body)
        except httpx.HTTPError as error:
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            raise MeasurementError(f"the judge at {self._url} cannot be reached: {what}", transient=True) from error
        except httpx.InvalidURL as error:
            raise MeasurementError(f"the judge's address {self._url} is not a URL: {error}") from error
        if response.status_code != httpx.codes.OK:
            excerpt = response.text[:_EXCERPT]
            raise MeasurementError(
                f"the judge at {self._url} answered {response.status_code}: {excerpt}",
                transient=response.status_code in _TRANSIENT,
            )
        return _content(response)


def _content(response: httpx.Response) -> str:
    try:
        content: Any = response.json()["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise MeasurementError(f"the judge's answer is no chat completion: {response.text[:_EXCERPT]}") from error
    if not isinstance(content, str):
        raise MeasurementError("the judge answered without a text")
    return content


class RecordedJudge:
    """Replies written down before, by the fingerprint of what is marked."""

    name = "recorded replies"

    def __init__(self, replies: dict[str, str], folder: Path) -> None:
        self._replies = replies
        self._folder = folder

    @classmethod
    def from_folder(cls, folder: Path) -> "RecordedJudge":
        """Every `replies:` entry of the folder's YAML files. Raises `UsageError` for a file of another shape."""
        replies: dict[str, str] = {}
        for file in sorted(folder.glob("*.yaml")):
            try:
                entries = yaml.safe_load(file.read_text(encoding="utf-8"))["replies"]
                replies |= {str(entry["fingerprint"]): str(entry["reply"]) for entry in entries}
            except (yaml.YAMLError, OSError, KeyError, TypeError, ValueError) as error:
                raise UsageError(f"{file}: not a file of recorded replies: {error!r}") from error
        return cls(replies, folder)

    async def reply(self, request: JudgeRequest) -> str:
        """See `Judge.reply`."""
        if request.fingerprint not in self._replies:
            raise MeasurementError(
                f"no recorded judge reply has the fingerprint {request.fingerprint}: name a judge model with "
                f"{SETTINGS}, or record a reply in {self._folder}"
            )
        return self._replies[request.fingerprint]
