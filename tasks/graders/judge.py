"""Ask a judge model: its votes, each with one repair of an unusable reply, and the grader that takes its score."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.evidence import Evidence, score_grade
from passgate.tasks.graders.grader_reply import median_reply, read_document, reply_grade
from passgate.tasks.graders.judge_prompt import JudgePrompt, judge_prompt, judge_request, sendable
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.grade import JudgeMessage, JudgeRequest, LlmJudge, RawCheck, RawGrade
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.quotes import cut, quote_repr, raw
from passgate.tasks.model.transcript import Transcript, Usage, total_usage

LONGEST_REPLY: Final = 200_000
RESULTS_VARIABLE: Final = "EVALUATOR_RESULTS_JSON"  # What a composite's results are called in a prompt
NO_JUDGE: Final = (
    "no judge is configured: set judge.base_url and judge.model in gates.yaml, "
    "or PASSGATE_JUDGE_BASE_URL and PASSGATE_JUDGE_MODEL"
)
WROTE_NOTHING: Final = "the agent wrote nothing"
ONE_OBJECT: Final = "Reply with one JSON object and nothing else"
SCORE_SHAPE: Final = f"""\
{ONE_OBJECT}:
{{"score": a number from 0 (worst) to 1 (best), "assertions": [{{"text": "what you looked at", \
"passed": true or false, "evidence": "where it shows"}}], "reasoning": "one or two sentences"}}
At most 8 assertions."""
_AUTHORS_SHAPE: Final = f"""\
{ONE_OBJECT}. It has a "score", a number from 0 (worst) to 1 (best), beside whatever else you are asked for."""
_FENCE: Final = "```"
_LONGEST_REPEATED: Final = 4000  # Characters of an unusable reply that the judge is shown again
_REPAIR: Final = """\
That reply cannot be used: {problem}. Whatever it says, grade the same material again, by the rubric alone. {shape}"""
_Graded = TypeVar("_Graded")


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these keys and no other, as strict endpoints ask for it."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT: Final = {"type": "string"}
_ASSERTION: Final = object_schema({"text": TEXT, "passed": {"type": "boolean"}, "evidence": TEXT})
SCORE_SCHEMA: Final = object_schema(
    {"score": {"type": "number"}, "assertions": {"type": "array", "items": _ASSERTION}, "reasoning": TEXT}
)


class UnusableReplyError(MeasurementError):
    """A reply that is not a grade. `problem` says why, in words of ours alone."""

    def __init__(self, problem: str, reply: str) -> None:
        self.problem = problem
        super().__init__(raw(f"the judge's reply is unusable: {problem}. The reply: ", quote_repr(reply, 500)))


def read_object(reply: str, read: Callable[[Any], _Graded]) -> _Graded:
    """Return what `read` makes of the JSON in a judge's reply, which stands alone or alone in a code fence.

    Raises `UnusableReplyError` when there is no such JSON, or when `read` raises `ValueError`: a reply that has to be
    interpreted is no measurement.
    """
    try:
        if len(reply) > LONGEST_REPLY:
            raise ValueError(f"it is longer than {LONGEST_REPLY} characters")
        document = reply.strip()
        first, _, rest = document.partition("\n")
        if first.strip() in {_FENCE, f"{_FENCE}json"} and rest.endswith(_FENCE):
            document = rest.removesuffix(_FENCE)
        return read(parse_json(document))
    except ValueError as error:
        raise UnusableReplyError(str(error), reply) from None


async def ask(
    judge: LlmJudge | None,
    prompt: JudgePrompt,
    shape: str,
    schema: dict[str, Any] | None,
    read: Callable[[Any], _Graded],
    *,
    how: str = "",
) -> tuple[list[_Graded], Usage]:
    """Ask as often as the judge votes, all at once. Return what was read of all votes, and what they used together.

    `read` takes the grade from the JSON of a reply, or raises `ValueError`. `how` says how to grade, and `shape` what a
    reply has to look like: the judge receives the latter again when one is unusable. Raises `MeasurementError` when
    there is no judge, or when one of its replies is unusable, also after it was asked to repair it.
    """
    if judge is None:
        raise MeasurementError(NO_JUDGE)
    request = judge_request(prompt, f"{how} {shape}".strip(), schema)
    # Every vote ends before an error is raised: none goes on asking when the trial is over.
    results = await asyncio.gather(
        *(_vote(judge, request, shape, read) for _ in range(judge.votes)), return_exceptions=True
    )
    votes = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        votes.append(result)
    return [graded for graded, _ in votes], total_usage([usage for _, usage in votes])


async def _vote(
    judge: LlmJudge, request: JudgeRequest, shape: str, read: Callable[[Any], _Graded]
) -> tuple[_Graded, Usage]:
    reply = await judge.reply(request)
    try:
        return read_object(reply.text, read), reply.usage
    except UnusableReplyError as error:
        problem = error.problem
    unusable = cut(reply.text.strip(), _LONGEST_REPEATED) or "(nothing)"
    messages = (
        *request.messages,
        JudgeMessage(role="assistant", content=sendable(unusable, "the reply")),
        JudgeMessage(role="user", content=_REPAIR.format(problem=problem, shape=shape)),
    )
    # The fingerprint stays: recorded replies go by it, and the same is graded.
    repaired = await judge.reply(request.model_copy(update={"messages": messages}))
    return read_object(repaired.text, read), total_usage([reply.usage, repaired.usage])


def wrote_nothing(transcript: Transcript) -> bool:
    """Return whether the agent neither wrote a word nor called a tool."""
    said = any(step.content.strip() or step.tool_calls for step in transcript.steps)
    return not said and not transcript.output.strip()


def add_votes(grade: RawGrade, scores: Sequence[float], usage: Usage) -> RawGrade:
    """Return a grade with the scores of its votes, where there are several, and what the judge used."""
    return grade.model_copy(update={"votes": tuple(scores) if len(scores) > 1 else (), "usage": usage})


async def grade_by_judge(options: LlmGrader, evidence: Evidence, extra: Mapping[str, str] | None = None) -> RawGrade:
    """Ask the judge for a score. See `judge_prompt` for what it is asked and `read_document` for its reply.

    `extra` are further variables of the prompt, as a composite has them. Of several votes the median counts. An agent
    that wrote nothing has 0, and nobody is asked. Raises `MeasurementError` when there is no judge, nothing to
    grade by, or no usable reply, also after the judge was asked to repair it.
    """
    if wrote_nothing(evidence.transcript) and not extra:
        return score_grade(options, 0, [RawCheck(passed=False, message=WROTE_NOTHING)])
    prompt = judge_prompt(evidence, options.prompt, options.criteria, material=extra or {})
    if not prompt.is_authors and "criteria" not in prompt.instructions:
        raise MeasurementError("the LLM judge has no criteria: give the grader a `prompt` or the test `criteria`")
    # Authors ask for keys of their own, which a schema would forbid.
    shape, schema = (_AUTHORS_SHAPE, None) if prompt.is_authors else (SCORE_SHAPE, SCORE_SCHEMA)
    replies, usage = await ask(evidence.judge, prompt, shape, schema, read_document)
    return add_votes(reply_grade(options, median_reply(replies)), [reply.score for reply in replies], usage)
