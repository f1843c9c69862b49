"""Several graders with one score."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import BORDERLINE_FROM, PASS_FROM, ROUNDING, scored, settled, unmeasured
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.judges.llm_grader import RESULTS_VARIABLE, grade_by_judge, read_judge_reply
from passgate.tasks.graders.programs.code_grader import read_code_reply, run_program
from passgate.tasks.graders.programs.grader_reply import GraderReply, grade_of
from passgate.tasks.graders.texts import shorten
from passgate.tasks.model.assertions import AssertionOptions, CodeGrader, LlmGrader, Rubrics
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import Aggregator, Composite, Grader, Turns
from passgate.tasks.model.transcript import Usage, total_usage
from passgate.tasks.stats.estimators import weighted_mean

SAFE_FROM: Final = 0.6
"""The least score of a member that a safety gate requires (AgentEvals)."""
Ask = Callable[[Grader, Evidence], Awaitable[Grade]]
"""One grader's answer for one trial, errors included."""
USUAL_PROMPT: Final = f"""\
These are the results of several graders of one trial:

{{{{ {RESULTS_VARIABLE} }}}}

Give the score that they come to together."""
_BY_REPLY: Final = frozenset({"code_grader", "llm_grader"})
"""Aggregators whose score a program or the judge gives."""
Leaf = Callable[[Grader, Grade | None], Grade]
"""The grade of a grader that is made of no others, from the one that it had, where it had one."""


class GradedMember(NamedTuple):
    """One of the grades that are made one."""

    name: str
    grade: Grade
    weight: float = 1.0
    safe_from: float | None = None
    """The least score with which it satisfies a safety gate; `None`: it must pass."""
    required: bool = False
    may_bind: bool = True
    """Whether its grade can fail the whole by itself, when it is measured."""


class Aggregate(NamedTuple):
    """What the scores of several members come to."""

    score: float
    least: float | None = None
    """The least score that passes, where the way of aggregating says it."""
    fatal: str = ""


def member_of(options: Grader, grade: Grade) -> GradedMember:
    """A grader and its grade as a member. A grader that passes or fails, as those of passgate's own suites do, has 0
    when it fails, and satisfies a safety gate when it passes.
    """
    if not isinstance(options, AssertionOptions):
        counted = grade if grade.passed or grade.error is not None else grade.model_copy(update={"score": 0.0})
        return GradedMember(options.label, counted, options.weight)
    return GradedMember(
        options.label,
        grade,
        options.weight,
        safe_from=SAFE_FROM if options.min_score is None else options.min_score,
        required=options.required,
        may_bind=options.required or isinstance(options, Composite | Rubrics | Turns),
    )


def aggregated(aggregator: Aggregator, members: Sequence[GradedMember]) -> Aggregate:
    """The scores of members, all of them measured, as one.

    - `weighted_average`: the sum of score x weight over the sum of the weights.
    - `minimum`, `maximum`: of the scores.
    - `safety_gate`: 0, and fatal, when a required member has less than 0.6 or than its own `min_score`; else the
      weighted average of all.
    - `all_or_nothing`: the weighted average when every score reaches `threshold` (0.8 when not given), else 0.
    - `threshold`: the share of members that pass; it passes from `threshold` on.

    After AgentEvals and, for `threshold`, AgentV. Raises `MeasurementError` when `weights` or `required` name nobody,
    when a safety gate requires nobody, or when all weights are 0.
    """
    _require_known([*aggregator.weights, *aggregator.required], members)
    return _FORMULAS[aggregator.type](aggregator, members)


def _require_known(names: Sequence[str], members: Sequence[GradedMember]) -> None:
    unknown = sorted(set(names) - {member.name for member in members})
    if unknown:
        known = ", ".join(member.name for member in members)
        raise MeasurementError(f"the aggregator names {', '.join(unknown)}; the members are {known}")


def _weighted_average(aggregator: Aggregator, members: Sequence[GradedMember]) -> Aggregate:
    weights = [aggregator.weights.get(member.name, member.weight) for member in members]
    mean = weighted_mean([score_of(member) for member in members], weights)
    if mean is None:
        raise MeasurementError("every member has the weight 0, so there is no average: give one a weight above 0")
    return Aggregate(mean)


def _safety_gate(aggregator: Aggregator, members: Sequence[GradedMember]) -> Aggregate:
    gate = [member for member in members if member.required or member.name in aggregator.required]
    if not gate:
        raise MeasurementError("the safety gate has no required member: name at least one in `required`")
    unsafe = [told(member) for member in gate if not _is_safe(member)]
    if unsafe:
        return Aggregate(0.0, fatal=f"the safety gate failed: {'; '.join(unsafe)}")
    return _weighted_average(aggregator, members)


def told(member: GradedMember) -> str:
    """A member's score, with the first thing that was wrong."""
    why = next((f" ({shorten(check.message, 300)})" for check in member.grade.checks if not check.passed), "")
    return f"{member.name} scored {score_of(member):.3g}{why}"


def _is_safe(member: GradedMember) -> bool:
    return member.grade.passed if member.safe_from is None else score_of(member) >= member.safe_from - ROUNDING


def _all_or_nothing(aggregator: Aggregator, members: Sequence[GradedMember]) -> Aggregate:
    least = PASS_FROM if aggregator.threshold is None else aggregator.threshold
    everything = all(score_of(member) >= least - ROUNDING for member in members)
    return _weighted_average(aggregator, members) if everything else Aggregate(0.0)


def _threshold(aggregator: Aggregator, members: Sequence[GradedMember]) -> Aggregate:
    least = PASS_FROM if aggregator.threshold is None else aggregator.threshold
    return Aggregate(sum(member.grade.passed for member in members) / len(members), least=least)


_FORMULAS: Final[dict[str, Callable[[Aggregator, Sequence[GradedMember]], Aggregate]]] = {
    "weighted_average": _weighted_average,
    "minimum": lambda _, members: Aggregate(min(map(score_of, members))),
    "maximum": lambda _, members: Aggregate(max(map(score_of, members))),
    "safety_gate": _safety_gate,
    "all_or_nothing": _all_or_nothing,
    "threshold": _threshold,
}


def score_of(member: GradedMember) -> float:
    """The score of a measured member."""
    if member.grade.score is None:
        raise ValueError(f"{member.name} was not measured")
    return member.grade.score


def binding_reason(members: Sequence[GradedMember]) -> str:
    """Why the whole fails whatever the scores are: something required is not met, or must never be and was."""
    for member in members:
        reason = member.grade.fatal or next((found.message for found in member.grade.violations), "")
        if reason:
            return f"{member.name}: {reason}"
    return ""


def supposed(member: GradedMember, *, at_best: bool) -> GradedMember:
    """A member as it may be at best or at worst, where it was not measured."""
    if member.grade.error is None:
        return member
    fatal = "it was not measured" if member.may_bind and not at_best else ""
    update = {"score": float(at_best), "passed": at_best, "fatal": fatal, "error": None}
    return member._replace(grade=member.grade.model_copy(update=update))


def usage_of(grades: Sequence[Grade]) -> Usage:
    """What the judge used for several grades; those that asked nobody say nothing of it."""
    asked = [grade.usage for grade in grades if grade.usage != Usage()]
    return total_usage(asked) if asked else Usage()


class Replies(NamedTuple):
    """How the replies are read of those who give the score of a composite where no formula does."""

    of_program: Callable[[str, str, int], GraderReply] = read_code_reply
    """What a program says, from its output, its error output and its exit code."""
    of_judge: Callable[[str], GraderReply] = read_judge_reply


NATIVE_REPLIES: Final = Replies()


async def grade_composite(ask: Ask, options: Composite, evidence: Evidence, replies: Replies = NATIVE_REPLIES) -> Grade:
    """Ask the members, one after the other in the same sandbox, and make one grade of theirs.

    How scores become one is `aggregated`'s matter, or that of a program or the judge, which are given the results. The
    composite passes from the highest of its `threshold`, its `min_score` and the aggregator's bar on, 0.8 when there is
    none; short of its own `threshold` it fails the trial. So does a member that is required, at any depth, or has a
    violation, whatever the score is.

    The grade has an error when a member could not be measured and it depends on it, or when the program or the judge
    fails. It holds the members' grades, their violations and what they used, also then.
    """
    grades = [await ask(member, evidence) for member in options.assertions]
    members = [member_of(*pair) for pair in zip(options.assertions, grades, strict=True)]
    try:
        if options.aggregator.type in _BY_REPLY:
            grade = await _by_reply(options, members, evidence, replies)
        else:
            grade = combined(options, options.aggregator, members, options.threshold)
    except MeasurementError as error:
        grade = unmeasured(options, str(error), transient=error.transient)
    return with_members(grade, grades)


def with_members(grade: Grade, grades: Sequence[Grade]) -> Grade:
    """A grade with the grades that it is made of: what they found and used is found and used by it."""
    return grade.model_copy(
        update={
            "members": tuple(grades),
            "violations": tuple(violation for member in grades for violation in member.violations),
            "usage": usage_of([grade, *grades]),
        }
    )


def combined(
    options: Composite | Turns, aggregator: Aggregator, members: Sequence[GradedMember], threshold: float | None = None
) -> Grade:
    """The grade of members by a formula.

    A member without a score is taken as it may be at best and at worst. Raises `MeasurementError` with its error when
    that makes a difference; where it makes none the score is the least that it can be.
    """
    best = _by_formula(options, aggregator, [supposed(member, at_best=True) for member in members], threshold)
    worst = _by_formula(options, aggregator, [supposed(member, at_best=False) for member in members], threshold)
    certain = best.passed is worst.passed and not (options.negate and best.score != worst.score)
    if not certain:
        require_measured(members)
    unknown = [f"{member.name}: {member.grade.error}" for member in members if member.grade.error is not None]
    notes = tuple(Check(passed=False, message=shorten(f"not measured: {note}")) for note in unknown)
    fatal = best.fatal if unknown else worst.fatal
    return worst.model_copy(update={"checks": (*worst.checks, *notes), "fatal": fatal})


def _by_formula(
    options: Composite | Turns, aggregator: Aggregator, members: Sequence[GradedMember], threshold: float | None
) -> Grade:
    whole = aggregated(aggregator, members)
    least = _least(whole.least, threshold, options.min_score)
    fatal = whole.fatal or binding_reason(members) or _short_of(threshold, whole.score)
    passed = whole.score >= least - ROUNDING and not fatal
    message = f"{aggregator.type} is {whole.score:.3g}, expected at least {least:g}{_low(members)}"
    checks = [Check(passed=whole.score >= least - ROUNDING, message=shorten(message))]
    return scored(options, whole.score, checks, fatal=fatal).model_copy(update={"passed": passed})


def _short_of(threshold: float | None, score: float) -> str:
    """Who sets a threshold of its own for some graders does not want others to make up for them."""
    if threshold is None or score >= threshold - ROUNDING:
        return ""
    return f"its score is {score:.3g}, below its threshold of {threshold:g}"


def _least(*bars: float | None) -> float:
    return max((bar for bar in bars if bar is not None), default=PASS_FROM)


def _low(members: Sequence[GradedMember]) -> str:
    low = [told(member) for member in members if not member.grade.passed]
    return f": {'; '.join(low)}" if low else ""


def require_measured(members: Sequence[GradedMember]) -> None:
    """Raises `MeasurementError` with the errors of members that were not measured."""
    errors = [member for member in members if member.grade.error is not None]
    if errors:
        text = "; ".join(f"{member.name}: {member.grade.error}" for member in errors)
        raise MeasurementError(text, transient=any(member.grade.transient for member in errors))


async def _by_reply(options: Composite, members: Sequence[GradedMember], evidence: Evidence, replies: Replies) -> Grade:
    """The score that a program or the judge gives for the results.

    Raises `MeasurementError` as they do, and when a member was not measured. Where something binding fails it anyway
    nobody is asked and the score is 0.
    """
    fatal = binding_reason(members)
    if fatal:
        return scored(options, 0.0, [Check(passed=False, message=shorten(fatal))], fatal=fatal)
    require_measured(members)
    results = results_of(members)
    if options.aggregator.type == "code_grader":
        grade = await _by_program(options, results, evidence, replies.of_program)
    else:
        grade = await _by_judge(options, results, evidence, replies.of_judge)
    return grade.model_copy(update={"name": options.label, "type": options.type})


async def _by_program(
    options: Composite, results: dict[str, Any], evidence: Evidence, read: Callable[[str, str, int], GraderReply]
) -> Grade:
    aggregator = options.aggregator
    if not aggregator.command:
        raise MeasurementError(f"{options.label}: the aggregator has no command")
    program = CodeGrader(
        type="code_grader",
        name=options.label,
        command=aggregator.command,
        cwd=aggregator.cwd,
        min_score=_least(options.threshold, options.min_score),
    )
    result = await run_program(program, evidence, {"results": results})
    return grade_of(program, read(result.stdout, result.stderr, result.exit_code))


async def _by_judge(
    options: Composite, results: dict[str, Any], evidence: Evidence, read: Callable[[str], GraderReply]
) -> Grade:
    judge = LlmGrader(
        type="llm_grader",
        name=options.label,
        prompt=options.aggregator.prompt or USUAL_PROMPT,
        min_score=_least(options.threshold, options.min_score),
    )
    text = json.dumps(results, ensure_ascii=False, indent=2)
    return await grade_by_judge(judge, evidence, {RESULTS_VARIABLE: text}, read)


def results_of(members: Sequence[GradedMember]) -> dict[str, Any]:
    """The results by the members' names, in the words of both AgentEvals and AgentV.

    Raises `MeasurementError` when two members have the same name: one would hide the other.
    """
    names = [member.name for member in members]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise MeasurementError(f"several members have the name {', '.join(twice)}: give each its own `name`")
    return {member.name: _result(member) for member in members}


def _result(member: GradedMember) -> dict[str, Any]:
    grade = member.grade
    return {
        "score": score_of(member),
        "verdict": _verdict(grade, score_of(member)),
        "type": grade.type,
        "hits": [check.message for check in grade.checks if check.passed],
        "misses": [check.message for check in grade.checks if not check.passed],
        "assertions": [{"text": check.message, "passed": check.passed} for check in grade.checks],
    }


def _verdict(grade: Grade, score: float) -> str:
    if grade.passed:
        return "pass"
    return "borderline" if score >= BORDERLINE_FROM - ROUNDING and not grade.fatal else "fail"


def recombined(options: Grader, grade: Grade | None, leaf: Leaf) -> Grade:
    """The grade of a grader whose parts, at any depth, have the grades that `leaf` gives them.

    `grade` is the one that it had, with its members. A composite whose score a program or a judge gives is a leaf, and
    so are graders of turns. Raises `MeasurementError` when it depends on a part that was not measured.
    """
    if not isinstance(options, Composite) or options.aggregator.type in _BY_REPLY:
        return leaf(options, grade)
    known = grade.members if grade is not None else ()
    grades = [
        recombined(member, known[place] if place < len(known) else None, leaf)
        for place, member in enumerate(options.assertions)
    ]
    members = [member_of(*pair) for pair in zip(options.assertions, grades, strict=True)]
    return settled(options, combined(options, options.aggregator, members, options.threshold))
