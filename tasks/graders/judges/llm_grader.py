"""Ask a judge model for a score, by criteria or a prompt of the suites' authors."""

from collections.abc import Mapping, Sequence
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.evidence import Evidence
from passgate.tasks.graders.judges import asking
from passgate.tasks.graders.judges.judge_prompt import Asked, judge_prompt, judge_request
from passgate.tasks.graders.programs import grader_reply
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.transcript import Usage

RESULTS_VARIABLE: Final = "EVALUATOR_RESULTS_JSON"  # What a composite's results are called in a prompt
SCORE_SHAPE: Final = f"""\
{asking.ONE_OBJECT}:
{{"score": a number from 0 (worst) to 1 (best), "assertions": [{{"text": "what you looked at", \
"passed": true or false, "evidence": "where it shows"}}], "reasoning": "one or two sentences"}}
At most 8 assertions."""
_AUTHORS_SHAPE: Final = f"""\
{asking.ONE_OBJECT}. It has a "score", a number from 0 (worst) to 1 (best), beside whatever else you are asked for."""
TEXT: Final = {"type": "string"}
_ASSERTION: Final = asking.object_schema({"text": TEXT, "passed": {"type": "boolean"}, "evidence": TEXT})
SCORE_SCHEMA: Final = asking.object_schema(
    {"score": {"type": "number"}, "assertions": {"type": "array", "items": _ASSERTION}, "reasoning": TEXT}
)


def read_judge_reply(reply: str) -> grader_reply.GraderReply:
    """Return the score in a judge's reply, a JSON object. Raises `UnusableReplyError`."""
    return asking.read_object(reply, grader_reply.read_document)


async def grade_by_judge(options: LlmGrader, evidence: Evidence, extra: Mapping[str, str] | None = None) -> RawGrade:
    """Ask the judge for a score. See `judge_prompt` for what it is asked and `read_document` for its reply.

    `extra` are further variables of the prompt, as a composite has them. Of several votes the median counts. An agent
    that wrote nothing has 0, and nobody is asked. Raises `MeasurementError` when there is no judge, nothing to
    grade by, or no usable reply, also after the judge was asked to repair it.
    """
    if asking.wrote_nothing(evidence.transcript) and not extra:
        return scored(options, 0, [RawCheck(passed=False, message=asking.WROTE_NOTHING)])
    prompt = judge_prompt(Asked(options.prompt, options.criteria, extra=extra or {}), evidence)
    if not prompt.is_authors and "criteria" not in prompt.told:
        raise MeasurementError("the LLM judge has no criteria: give the grader a `prompt` or the test `criteria`")
    # Authors ask for keys of their own, which a schema would forbid.
    shape, schema = (_AUTHORS_SHAPE, None) if prompt.is_authors else (SCORE_SHAPE, SCORE_SCHEMA)
    marks, usage = await asking.ask(evidence.judge, judge_request(prompt, shape, schema), read_judge_reply, shape)
    grade = grader_reply.grade_of(options, grader_reply.median_reply(marks))
    return with_votes(grade, [mark.score for mark in marks], usage)


def with_votes(grade: RawGrade, scores: Sequence[float], usage: Usage) -> RawGrade:
    """Return a grade with the scores of its votes, where there are several, and what the judge used."""
    votes = tuple(scores) if len(scores) > 1 else ()
    return grade.model_copy(update={"votes": votes, "usage": usage})
