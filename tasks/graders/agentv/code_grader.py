"""Code graders as AgentV 4.42.4 scores them: kept for comparison, with the holes that it has."""

from typing import Any, TypeGuard

from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.programs.code_grader import grade_with_program
from passgate.tasks.graders.programs.grader_reply import GraderReply
from passgate.tasks.graders.texts import ending, shorten
from passgate.tasks.model.assertions import CodeGrader
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.json_values import parse_json


async def grade_code_as_agentv(options: CodeGrader, evidence: Evidence) -> Grade:
    """The grade of a program whose reply is read as `read_code_reply_as_agentv` does. Raises `MeasurementError` as
    `grade_code` does for a program that does not come to its end.
    """
    return await grade_with_program(options, evidence, read_code_reply_as_agentv)


def read_code_reply_as_agentv(stdout: str, stderr: str, exit_code: int) -> GraderReply:
    """The score that AgentV gives: 0 for every exit code but 0; 1 for output that is no JSON object; else the object's
    `score` brought into 0..1, the share of its `assertions` (or `checks`) that passed where it has none, or 0.
    """
    if exit_code != 0:
        said = stdout.strip() or ending(stderr, 500) or f"exit code {exit_code}"
        return GraderReply(0.0, (Check(passed=False, message=shorten(said)),))
    document = printed_object(stdout)
    if document is None:
        return GraderReply(1.0, (Check(passed=True, message=shorten(stdout.strip() or "exit code 0")),))
    checks = _checks(document)
    return GraderReply(_score(document, checks), checks)


def printed_object(stdout: str) -> dict[str, Any] | None:
    """The JSON object that is all of the output; `None` for any other output."""
    try:
        document = parse_json(stdout)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _checks(document: dict[str, Any]) -> tuple[Check, ...]:
    entries = document.get("assertions", document.get("checks"))
    texts = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return tuple(
        Check(
            passed=entry.get("passed", entry.get("pass")) is True,
            message=shorten(str(entry.get("text", "")) or "(no text)"),
        )
        for entry in texts
    )


def _score(document: dict[str, Any], checks: tuple[Check, ...]) -> float:
    score = document.get("score")
    if is_number(score):
        return float(min(max(score, 0), 1))
    if score is None and checks:
        return sum(check.passed for check in checks) / len(checks)
    return 0.0


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a JSON value is a number; `true` is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)
