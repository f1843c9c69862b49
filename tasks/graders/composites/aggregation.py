"""Several grades made one: by their scores, with what binds whatever the scores say."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import PASS_FROM, ROUNDING
from passgate.tasks.graders.texts import shorten
from passgate.tasks.model.assertions import AssertionOptions, Rubrics
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Aggregator, Composite, Grader, Turns
from passgate.tasks.model.transcript import Usage, total_usage
from passgate.tasks.stats.estimators import weighted_mean

SAFE_FROM: Final = 0.6
"""The least score of a member that a safety gate requires (AgentEvals)."""


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
