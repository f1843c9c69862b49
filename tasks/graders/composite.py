"""Several graders with one score, by a formula, a program or the LLM judge."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from passgate.tasks.errors import MeasurementError, Quote, Raw
from passgate.tasks.graders import raw_grade
from passgate.tasks.graders.evidence import BORDERLINE_FROM, ROUNDING, Evidence, error_grade, score_grade
from passgate.tasks.model.assertions import CodeGrader, LlmGrader, Rubrics
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.grader_options import PASS_FROM, AssertionOptions
from passgate.tasks.model.graders import Aggregator, Composite, Turns
from passgate.tasks.model.quotes import Masker, raw, raw_join
from passgate.tasks.model.transcript import Usage, total_usage
from passgate.tasks.stats.estimators import weighted_mean

SAFE_FROM: Final = 0.6  # The least score of a member that a safety gate requires (AgentEvals)
USUAL_PROMPT: Final = """\
These are the results of several graders of one trial:

{variable}

Give the score that they come to together."""


class GradedMember(NamedTuple):
    """One of the grades that are made one."""

    name: str
    grade: RawGrade
    weight: float = 1.0
    safe_from: float | None = None  # The least score with which it satisfies a safety gate; `None`: it must pass
    required: bool = False
    may_bind: bool = True  # Whether its grade can fail the whole by itself, when it is measured

    @property
    def score(self) -> float:
        """The score of a measured member."""
        if self.grade.score is None:
            raise ValueError(f"{self.name} was not measured")
        return self.grade.score

    @property
    def text(self) -> Raw:
        """Its score, with the first thing that was wrong."""
        failed = next((check.message for check in self.grade.checks if not check.passed), "")
        why = raw(" (", Quote(raw(failed), 300), ")") if failed else ""
        return raw(f"{self.name} scored {self.score:.3g}", why)

    def suppose(self, *, at_best: bool) -> "GradedMember":
        """Return the member as it may be at best or at worst, where it was not measured."""
        if self.grade.error is None:
            return self
        fatal = "it was not measured" if self.may_bind and not at_best else ""
        update = {"score": float(at_best), "passed": at_best, "fatal": fatal, "error": None}
        return self._replace(grade=self.grade.model_copy(update=update))


def composite_members(options: Composite, grades: Sequence[RawGrade]) -> list[GradedMember]:
    """Return the members of a composite with their grades."""
    members = []
    for member, grade in zip(options.assertions, grades, strict=True):
        if isinstance(member, AssertionOptions):
            safe_from = SAFE_FROM if member.min_score is None else member.min_score
            may_bind = member.required or isinstance(member, Composite | Rubrics | Turns)
            members.append(GradedMember(member.label, grade, member.weight, safe_from, member.required, may_bind))
        else:
            # Graders of passgate's own suites pass or fail: the share of a failed one must not lift an average.
            counted = grade if grade.passed or grade.error is not None else grade.model_copy(update={"score": 0.0})
            members.append(GradedMember(member.label, counted, member.weight))
    return members


async def grade_composite(options: Composite, evidence: Evidence) -> RawGrade:
    """Ask the members, one after the other in the same sandbox, and make one grade of theirs. `aggregate` makes one
    score of theirs, or a program or the judge does, which get the results. The composite passes from the highest of its
    `threshold`, its `min_score` and the aggregator's bar on, 0.8 when there is none; short of its own `threshold` it
    fails the trial. So does a member that is required, at any depth, or has a violation, whatever the score is. The
    grade has an error when a member could not be measured and the grade depends on it, or when the program or the judge
    fails. Even then it holds the members' grades, their violations and what they used.
    """
    grades = [await raw_grade(member, evidence) for member in options.assertions]
    members = composite_members(options, grades)
    try:
        if options.evidence == "transcript":
            grade = combine(options, options.aggregator, members, options.threshold)
        else:
            grade = await _ask_for_score(options, members, evidence)
    except MeasurementError as error:
        grade = error_grade(options, error.message, transient=error.transient)
    return attach_members(grade, grades)


def attach_members(grade: RawGrade, grades: Sequence[RawGrade]) -> RawGrade:
    """Return a grade with the grades that it is made of: what they found and used is found and used by it."""
    # Those that asked no judge say nothing of what it used.
    used = [one.usage for one in (grade, *grades) if one.usage != Usage()]
    return grade.model_copy(
        update={
            "members": tuple(grades),
            "violations": tuple(violation for member in grades for violation in member.violations),
            "usage": total_usage(used) if used else Usage(),
        }
    )


def combine(
    options: Composite | Turns, aggregator: Aggregator, members: Sequence[GradedMember], threshold: float | None = None
) -> RawGrade:
    """Return the grade of members by a formula.

    A member without a score is taken as it may be at best and at worst. Raises `MeasurementError` with its error when
    that makes a difference; where it makes none the score is the least that it can be.
    """
    best, worst = (
        _combine_measured(options, aggregator, [member.suppose(at_best=at_best) for member in members], threshold)
        for at_best in (True, False)
    )
    # What is negated passes by its score, so a difference of scores is one of passing too.
    if best.passed is not worst.passed or (options.negate and best.score != worst.score):
        _require_scores(members)
    unknown = [raw(f"{member.name}: ", member.grade.error) for member in members if member.grade.error is not None]
    notes = tuple(RawCheck(passed=False, message=Quote(raw("not measured: ", note))) for note in unknown)
    # At worst a member is fatal that was only not measured; what is fatal at best is so for certain.
    fatal = best.fatal if unknown else worst.fatal
    return worst.model_copy(update={"checks": (*worst.checks, *notes), "fatal": fatal})


def _combine_measured(
    options: Composite | Turns, aggregator: Aggregator, members: Sequence[GradedMember], threshold: float | None
) -> RawGrade:
    score, fatal = aggregate(aggregator, members)
    fatal = fatal or _binding_reason(members)
    if not fatal and threshold is not None and score < threshold - ROUNDING:
        # Who sets a threshold of its own for some graders does not want others to make up for them.
        fatal = f"its score is {score:.3g}, below its threshold of {threshold:g}"
    own = _least_share(aggregator) if aggregator.type == "threshold" else None
    least = _highest(own, threshold, options.min_score)
    reached = score >= least - ROUNDING
    low = raw_join("; ", [member.text for member in members if not member.grade.passed])
    message = raw(f"{aggregator.type} is {score:.3g}, expected at least {least:g}", ": " if low else "", low)
    grade = score_grade(options, score, [RawCheck(passed=reached, message=Quote(message))], fatal=fatal)
    # `score_grade` knows the `min_score` alone, which may be below the other bars.
    return grade.model_copy(update={"passed": reached and not fatal})


def aggregate(aggregator: Aggregator, members: Sequence[GradedMember]) -> tuple[float, Raw]:
    """Return the scores of members, all of them measured, as one, and why the whole fails whatever it is.

    - `weighted_average`: the sum of score x weight over the sum of the weights.
    - `minimum`, `maximum`: of the scores.
    - `safety_gate`: 0, and fatal, when a required member has less than 0.6 or than its own `min_score`; else the
      weighted average of all.
    - `all_or_nothing`: the weighted average when every score reaches `threshold` (0.8 when not given), else 0.
    - `threshold`: the share of members that pass; it passes from `threshold` on.

    After AgentEvals and, for `threshold`, AgentV. Raises `MeasurementError` when `weights` or `required` name nobody,
    when a safety gate requires nobody, or when all weights are 0.
    """
    unknown = sorted({*aggregator.weights, *aggregator.required} - {member.name for member in members})
    if unknown:
        known = ", ".join(member.name for member in members)
        raise MeasurementError(f"the aggregator names {', '.join(unknown)}; the members are {known}")
    scores = [member.score for member in members]
    match aggregator.type:
        case "minimum":
            return min(scores), ""
        case "maximum":
            return max(scores), ""
        case "threshold":
            return sum(member.grade.passed for member in members) / len(members), ""
        case "all_or_nothing" if min(scores) < _least_share(aggregator) - ROUNDING:
            return 0.0, ""
        case "safety_gate" if unsafe := _unsafe(aggregator, members):
            return 0.0, raw("the safety gate failed: ", raw_join("; ", [member.text for member in unsafe]))
    mean = weighted_mean(scores, [aggregator.weights.get(member.name, member.weight) for member in members])
    if mean is None:
        raise MeasurementError("every member has the weight 0, so there is no average: give one a weight above 0")
    return mean, ""


def _least_share(aggregator: Aggregator) -> float:
    return PASS_FROM if aggregator.threshold is None else aggregator.threshold


def _highest(*bars: float | None) -> float:
    return max((bar for bar in bars if bar is not None), default=PASS_FROM)


def _unsafe(aggregator: Aggregator, members: Sequence[GradedMember]) -> list[GradedMember]:
    gate = [member for member in members if member.required or member.name in aggregator.required]
    if not gate:
        raise MeasurementError("the safety gate has no required member: name at least one in `required`")
    return [
        member
        for member in gate
        if not (member.grade.passed if member.safe_from is None else member.score >= member.safe_from - ROUNDING)
    ]


def _binding_reason(members: Sequence[GradedMember]) -> Raw:
    """Return why the whole fails whatever the scores are: something required is not met, or must never be and was."""
    for member in members:
        reason = member.grade.fatal or next((found.message for found in member.grade.violations), "")
        if reason:
            return raw(f"{member.name}: ", reason)
    return ""


def _require_scores(members: Sequence[GradedMember]) -> None:
    errors = [member for member in members if member.grade.error is not None]
    if errors:
        text = raw_join("; ", [raw(f"{member.name}: ", member.grade.error or "") for member in errors])
        raise MeasurementError(text, transient=any(member.grade.transient for member in errors))


async def _ask_for_score(options: Composite, members: Sequence[GradedMember], evidence: Evidence) -> RawGrade:
    """Return the grade by the score that a program or the judge gives for the results. Raises `MeasurementError` as
    they do, and when a member was not measured.
    """
    fatal = _binding_reason(members)
    if fatal:  # whatever the reply says, so nobody is asked
        return score_grade(options, 0.0, [RawCheck(passed=False, message=fatal)], fatal=fatal)
    _require_scores(members)
    # Few composites ask anybody, and these take a while to import.
    from passgate.tasks.graders.code_grader import grade_by_program
    from passgate.tasks.graders.judge import RESULTS_VARIABLE, grade_by_judge

    results, aggregator = _results(members, evidence.masker), options.aggregator
    least = _highest(options.threshold, options.min_score)
    if aggregator.type == "llm_grader":
        prompt = aggregator.prompt or USUAL_PROMPT.format(variable=f"{{{{ {RESULTS_VARIABLE} }}}}")
        judge = LlmGrader(type="llm_grader", name=options.label, prompt=prompt, min_score=least)
        extra = {RESULTS_VARIABLE: json.dumps(results, ensure_ascii=False, indent=2)}
        grade = await grade_by_judge(judge, evidence, extra)
    elif aggregator.command:
        command, cwd = aggregator.command, aggregator.cwd
        program = CodeGrader(type="code_grader", name=options.label, command=command, cwd=cwd, min_score=least)
        grade = await grade_by_program(program, evidence, {"results": results})
    else:
        raise MeasurementError(f"{options.label}: the aggregator has no command")
    return grade.model_copy(update={"name": options.label, "type": options.type})


def _results(members: Sequence[GradedMember], masker: Masker) -> dict[str, Any]:
    """Return the results by the members' names, in the words of both AgentEvals and AgentV. Secrets are masked."""
    counts = Counter(member.name for member in members)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:  # one result would hide the other
        raise MeasurementError(f"several members have the name {', '.join(twice)}: give each its own `name`")
    results = {}
    for member in members:
        grade = member.grade
        checks = [(check.passed, masker.render(check.message)) for check in grade.checks]
        low = "borderline" if member.score >= BORDERLINE_FROM - ROUNDING and not grade.fatal else "fail"
        results[member.name] = {
            "score": member.score,
            "verdict": "pass" if grade.passed else low,
            "type": grade.type,
            "hits": [text for passed, text in checks if passed],
            "misses": [text for passed, text in checks if not passed],
            "assertions": [{"text": text, "passed": passed} for passed, text in checks],
        }
    return results
