"""A judge model scores the trial by criteria, or as a prompt of the suites' authors wants it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.judges.asking import (
    ONE_OBJECT,
    WROTE_NOTHING,
    Answers,
    Question,
    ask,
    object_schema,
    read_object,
    wrote_nothing,
)
from passgate.tasks.graders.judges.judge_prompt import Asked, judge_prompt, request_of
from passgate.tasks.graders.programs.grader_reply import GraderReply, grade_of, median_reply, read_document
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.grade import Check, Grade

RESULTS_VARIABLE: Final = "EVALUATOR_RESULTS_JSON"
"""What a composite's results are called in a prompt."""
ReadReply = Callable[[str], GraderReply]
"""What a judge says. Raises `UnusableReplyError`."""
_SHAPE: Final = f"""\
{ONE_OBJECT}:
{{"score": a number from 0 (worst) to 1 (best), "assertions": [{{"text": "what you looked at", \
"passed": true or false, "evidence": "where it shows"}}], "reasoning": "one or two sentences"}}
At most 8 assertions."""
_AUTHORS_SHAPE: Final = f"""\
{ONE_OBJECT}. It has a "score", a number from 0 (worst) to 1 (best), beside whatever else you are asked for."""
_TEXT: Final = {"type": "string"}


_ASSERTION: Final = object_schema({"text": _TEXT, "passed": {"type": "boolean"}, "evidence": _TEXT})
_SCHEMA: Final = object_schema(
    {"score": {"type": "number"}, "assertions": {"type": "array", "items": _ASSERTION}, "reasoning": _TEXT}
)


def read_judge_reply(reply: str) -> GraderReply:
    """The score in a judge's reply: a JSON object alone, or alone in a code fence. Raises `UnusableReplyError`."""
    return read_object(reply, read_document)


async def grade_by_judge(
    options: LlmGrader, evidence: Evidence, extra: Mapping[str, str] | None = None, read: ReadReply = read_judge_reply
) -> Grade:
    """Ask the judge for a score. See `judge_prompt` for what it is asked and `read_document` for its reply.

    `extra` are further variables of the prompt, as a composite has them. Of several votes the median counts. An agent
    that wrote nothing has 0, and nobody is asked. Raises `MeasurementError` when there is no judge, nothing to mark by,
    or no usable reply, also after the judge was asked to repair it.
    """
    if wrote_nothing(evidence.transcript) and not extra:
        return scored(options, 0, [Check(passed=False, message=WROTE_NOTHING)])
    asked = Asked(options.prompt, options.criteria, extra=extra or {})
    answers = await ask(evidence.judge, _question(asked, evidence, read))
    grade = grade_of(options, median_reply(answers.marks))
    return with_votes(grade, [mark.score for mark in answers.marks], answers)


def with_votes(grade: Grade, scores: Sequence[float], answers: Answers[Any]) -> Grade:
    """A grade with the scores of its votes, where there are several, and what the judge used."""
    votes = tuple(scores) if len(scores) > 1 else ()
    return grade.model_copy(update={"votes": votes, "usage": answers.usage})


def _question(asked: Asked, evidence: Evidence, read: ReadReply) -> Question[GraderReply]:
    prompt = judge_prompt(asked, evidence)
    if not prompt.is_authors and not prompt.has_criteria:
        raise MeasurementError("the LLM judge has no criteria: give the grader a `prompt` or the test `criteria`")
    shape, schema = (_AUTHORS_SHAPE, None) if prompt.is_authors else (_SHAPE, _SCHEMA)
    return Question(request=request_of(prompt, shape, schema), read=read, shape=shape)
