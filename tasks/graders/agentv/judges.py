"""How AgentV 4.42.4 reads the replies of programs and judges and combines several graders, its faults included."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

from passgate.tasks.graders.answers.fields import in_braces
from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.composites.composite import Ask, grade_composite
from passgate.tasks.graders.composites.turns import grade_parts
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.judges import llm_grader
from passgate.tasks.graders.judges.asking import WROTE_NOTHING, read_object, wrote_nothing
from passgate.tasks.graders.programs.grader_reply import GraderReply, share
from passgate.tasks.model.assertions import AssertionOptions, Criterion, Rubrics
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.graders import Composite, Grader, Turns
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.quotes import quote, quote_end

_TRUE: Final = frozenset({"true", "yes", "pass", "passed", "1"})
_NO_TEXT: Final = "(no text)"
_KNOWN_AGGREGATORS: Final = frozenset({"weighted_average", "threshold", "code_grader", "llm_grader"})


def read_code_reply_as_agentv(stdout: str, stderr: str, exit_code: int) -> GraderReply:
    """The score that AgentV gives: 0 for every exit code but 0; 1 for output that is no JSON object; else the object's
    `score` brought into 0..1, the share of its `assertions` (or `checks`) that passed where it has none, or 0.
    """
    if exit_code != 0:
        said = quote(stdout.strip()) or quote_end(stderr, 500) or f"exit code {exit_code}"
        return GraderReply(0.0, (RawCheck(passed=False, message=said),))
    document = _printed_object(stdout)
    if document is None:
        return GraderReply(1.0, (RawCheck(passed=True, message=quote(stdout.strip() or "exit code 0")),))
    entries = document.get("assertions", document.get("checks"))
    checks = tuple(
        RawCheck(
            # Here only `true` passes; a judge's "yes" passes too, see `read_judge_reply_as_agentv`.
            passed=entry.get("passed", entry.get("pass")) is True,
            message=quote(str(entry.get("text", "")) or _NO_TEXT),
        )
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict)
    )
    score = document.get("score")
    if _is_number(score):
        return GraderReply(float(min(max(score, 0), 1)), checks)
    # A `score` that is there and no number is 0, whatever the checks say.
    share_passed = sum(check.passed for check in checks) / len(checks) if score is None and checks else 0.0
    return GraderReply(share_passed, checks)


def _printed_object(stdout: str) -> dict[str, Any] | None:
    """The JSON object that is all of the output; `None` for any other output."""
    try:
        document = parse_json(stdout)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_judge_reply_as_agentv(reply: str) -> GraderReply:
    """The judge's `score`, whatever it says of `pass`. Raises `UnusableReplyError`."""

    def read(document: Any) -> GraderReply:
        if not isinstance(document, Mapping):
            raise ValueError("it is not a JSON object")  # noqa: TRY004 - one error for every unusable reply
        entries = document.get("assertions")
        told = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
        checks = [
            # "passed" in whatever words a model has for it: `True` as a text is "true".
            RawCheck(
                passed=str(entry.get("passed")).strip().lower() in _TRUE,
                message=quote(str(entry.get("text") or _NO_TEXT)),
            )
            for entry in told
        ]
        return GraderReply(share(document.get("score"), "`score`"), tuple(checks))

    # AgentV takes what stands between the first `{` and the last `}`: text around the object is no error.
    return read_object(in_braces(reply) or reply, read)


async def grade_rubrics_as_agentv(options: Rubrics, evidence: Evidence) -> RawGrade:
    """The weighted mean over those items alone that the judge marks, 0 when there is none; `required` and `min_score`
    change nothing. Raises `MeasurementError` when there is no judge or no usable reply.
    """

    def read(reply: str, criteria: Sequence[Criterion]) -> llm_grader.ItemMarks:
        return read_object(in_braces(reply) or reply, lambda document: llm_grader.marks_in(document, criteria))

    if wrote_nothing(evidence.transcript):
        return scored(options, 0, [RawCheck(passed=False, message=WROTE_NOTHING)])
    marks_of_votes, usage = await llm_grader.ask_about_items(options, evidence, read)
    votes = {item.id: [vote[item.id] for vote in marks_of_votes if item.id in vote] for item in options.criteria}
    pairs = [(item, votes[item.id]) for item in options.criteria if votes[item.id]]
    marked = options.model_copy(update={"criteria": tuple(item for item, _ in pairs)})
    settled = [llm_grader.combined_mark(marks, item) for item, marks in pairs]
    score = llm_grader.weighted(marked.criteria, settled) if any(item.weight for item in marked.criteria) else 0.0
    return llm_grader.with_votes(scored(options, score, llm_grader.item_checks(marked, settled)), (), usage)


async def grade_composite_as_agentv(ask: Ask, options: Composite, evidence: Evidence) -> RawGrade:
    """The members' grades as `grade_composite` aggregates them, but a member's `required`, `negate` and `min_score` are
    nothing, and it weighs what `weights` says by its name, 1 where that says nothing.

    A composite with a `threshold` of its own is what AgentV calls an assert-set: its members' own weights and negations
    count. Composites with an aggregator that AgentV does not know, which it leaves out, are graded as AgentEvals means
    them.
    """
    if options.aggregator.type not in _KNOWN_AGGREGATORS:
        return await grade_composite(ask, options, evidence)
    of_assert_set = options.threshold is not None
    plain: dict[str, Any] = {} if of_assert_set else {"weight": 1.0}
    unbound = plain | {"required": False, "min_score": None} | ({} if of_assert_set else {"negate": False})
    members = tuple(
        # Graders of passgate's own suites have none of these options but a weight.
        member.model_copy(update=unbound if isinstance(member, AssertionOptions) else plain)
        for member in options.assertions
    )
    grade = await grade_composite(
        ask,
        options.model_copy(update={"assertions": members}),
        evidence,
        read_program=read_aggregate_as_agentv,
        read_judge=read_judge_reply_as_agentv,
    )
    return grade.model_copy(update={"fatal": ""})


def read_aggregate_as_agentv(stdout: str, stderr: str, exit_code: int) -> GraderReply:
    """The `score` that a program prints in a JSON object, brought into 0..1; 0 without one, or with another exit code
    than 0.
    """
    reply = read_code_reply_as_agentv(stdout, stderr, exit_code)
    document = _printed_object(stdout) or {}
    return reply if _is_number(document.get("score")) else reply._replace(score=0.0)


async def grade_turns_as_agentv(ask: Ask, options: Turns, evidence: Evidence) -> RawGrade:
    """As `grade_turns`, but a turn without graders has 1, and what is required in a turn makes that turn 0 and does not
    fail the rest.
    """

    async def grade_part(name: str, assertions: Sequence[Grader], of_part: Evidence) -> RawGrade:
        if not assertions:
            return RawGrade(name=name, type="composite", score=1.0, passed=True)
        whole = Composite(type="composite", name=name, assertions=tuple(assertions))
        grade = await grade_composite(ask, whole, of_part)
        return grade.model_copy(update={"score": 0.0, "fatal": ""}) if grade.fatal else grade

    return await grade_parts(options, dict(enumerate(options.turns, start=1)), evidence, grade_part)
