"""Make the judge that grades rubrics: a model behind an endpoint, or recorded replies."""

import os
from pathlib import Path

import yaml

from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.grade import JudgeReply, JudgeRequest, LlmJudge
from passgate.tasks.model.policy import JudgePolicy
from passgate.tasks.model.transcript import Usage

SETTINGS = "judge.base_url and judge.model in gates.yaml, or PASSGATE_JUDGE_BASE_URL and PASSGATE_JUDGE_MODEL"


def judge_model(policy: JudgePolicy) -> str:
    """Return the model that is asked and paid for; empty without one."""
    return os.environ.get("PASSGATE_JUDGE_MODEL") or policy.model or ""


def judge_name(policy: JudgePolicy) -> str:
    """Return the name of the configured judge in reports; empty without one."""
    return judge_model(policy) or (RecordedJudge.name if policy.recorded else "")


def make_llm_judge(policy: JudgePolicy, suites_folder: Path) -> LlmJudge | None:
    """Return the configured judge; `None` without one. Nothing is asked or connected yet.

    Raises `UsageError` for half a configuration, and for an unusable address or key.
    """
    base_url = os.environ.get("PASSGATE_JUDGE_BASE_URL") or policy.base_url
    model = judge_model(policy)
    if bool(base_url) != bool(model):
        raise UsageError(f"the judge needs both a base URL and a model: set {SETTINGS}")
    if base_url and model:
        # Imported late: a run without a judge needs no client of providers.
        from passgate.tasks.agents.http_judge import HttpJudge
        from passgate.tasks.providers.client import Upstream
        from passgate.tasks.providers.endpoints import ResolvedEndpoint
        from passgate.tasks.providers.registry import judging_apis

        apis, variable = judging_apis(), policy.api_key_variable
        named = os.environ.get("PASSGATE_JUDGE_API") or policy.api
        if named not in apis:
            raise UsageError(f"judge.api {named!r} is none of {', '.join(sorted(apis))}")
        provider, api = apis[named]
        endpoint = ResolvedEndpoint(base_url, os.environ.get(variable, ""), variable, provider.key_header)
        upstream = Upstream(endpoint, timeout_seconds=policy.timeout_seconds)
        return HttpJudge(upstream, api.for_model(model), model, policy)
    if policy.recorded:
        return RecordedJudge.from_folder(suites_folder / policy.recorded)
    return None


class RecordedJudge:
    """Replies written down before, by the fingerprint of what is marked."""

    name = "recorded replies"
    votes = 1

    def __init__(self, replies: dict[str, str], folder: Path) -> None:
        self._replies = replies
        self._folder = folder

    @classmethod
    def from_folder(cls, folder: Path) -> "RecordedJudge":
        """Read every `replies:` entry of the folder's YAML files. Raises `UsageError` for an invalid file."""
        replies: dict[str, str] = {}
        for file in sorted(folder.glob("*.yaml")):
            try:
                entries = yaml.safe_load(file.read_text(encoding="utf-8"))["replies"]
                replies |= {str(entry["fingerprint"]): str(entry["reply"]) for entry in entries}
            except (yaml.YAMLError, OSError, KeyError, TypeError, ValueError) as error:
                raise UsageError(f"{file}: not a file of recorded replies: {error!r}") from error
        return cls(replies, folder)

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        """Nothing is used and nothing is paid."""
        if request.fingerprint not in self._replies:
            raise MeasurementError(
                f"no recorded judge reply has the fingerprint {request.fingerprint}: name a judge model with "
                f"{SETTINGS}, or record a reply in {self._folder}"
            )
        usage = Usage(tokens_in=0, tokens_out=0, cost_usd=0)
        return JudgeReply(text=self._replies[request.fingerprint], usage=usage)

    async def close(self) -> None:
        """Do nothing."""
