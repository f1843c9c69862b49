"""LLM graders as AgentV scores them: for comparison, with the holes that it has."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from passgate.tasks.graders.answers.fields import in_braces
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.judges.asking import read_object
from passgate.tasks.graders.judges.llm_grader import grade_with_judge
from passgate.tasks.graders.programs.grader_reply import GraderReply, share
from passgate.tasks.graders.texts import shorten
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.grade import Check, Grade

_TRUE: Final = frozenset({"true", "yes", "pass", "passed", "1"})
_Mark = TypeVar("_Mark")


async def grade_by_judge_as_agentv(
    options: LlmGrader, evidence: Evidence, extra: Mapping[str, str] | None = None
) -> Grade:
    """The judge's `score`, whatever it says of `pass`. Raises `MeasurementError` as `grade_by_judge` does."""
    return await grade_with_judge(options, evidence, extra or {}, _read)


def within(reply: str, read: Callable[[Any], _Mark]) -> _Mark:
    """What `read` makes of the JSON between the first `{` and the last `}` of a reply. Raises `UnusableReplyError`."""
    return read_object(in_braces(reply) or reply, read)


def _read(reply: str) -> GraderReply:
    return within(reply, _score)


def _score(document: Any) -> GraderReply:
    if not isinstance(document, Mapping):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - one error for every unusable reply
    entries = document.get("assertions")
    checks = [_check(entry) for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return GraderReply(share(document.get("score"), "`score`"), tuple(checks))


def _check(entry: Mapping[str, Any]) -> Check:
    passed = entry.get("passed")
    is_true = passed if isinstance(passed, bool) else str(passed).strip().lower() in _TRUE
    return Check(passed=is_true, message=shorten(str(entry.get("text") or "(no text)")))
