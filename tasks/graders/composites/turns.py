"""Graders for each turn of a conversation."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import unmeasured
from passgate.tasks.graders.composites.aggregation import Member
from passgate.tasks.graders.composites.composite import Ask, combined, grade_composite, with_members
from passgate.tasks.graders.composites.conversation_turns import evidence_of_conversation, evidence_of_turn, turns_of
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.graders import Aggregator, Composite, Grader, TurnGraders, Turns

GradePart = Callable[[str, Sequence[Grader], Evidence], Awaitable[Grade]]
"""The grade of a turn or of the conversation, by its name, its graders and its evidence."""
AGGREGATORS: Final[dict[str, Literal["weighted_average", "minimum", "maximum"]]] = {
    "mean": "weighted_average",
    "min": "minimum",
    "max": "maximum",
}


async def grade_turns(ask: Ask, options: Turns, evidence: Evidence) -> Grade:
    """Ask each turn's graders about that turn alone, see `evidence_of_turn`, and those of the conversation about all of
    it. The score of a turn is the average of its graders by their weights, and it passes as a composite does.

    A turn that the agent did not come to, or did not answer, has 0. With `on_turn_failure: stop` so have those after
    one that did not pass. Turns without graders are not counted. Raises `MeasurementError` when no turn has any; the
    grade has an error when a turn could not be measured and it depends on it.
    """

    async def grade_part(name: str, assertions: Sequence[Grader], of_part: Evidence) -> Grade:
        return await grade_composite(ask, as_composite(name, assertions), of_part)

    counted = {number: turn for number, turn in enumerate(options.turns, start=1) if turn.assertions}
    return await grade_parts(options, counted, evidence, grade_part)


def as_composite(name: str, assertions: Sequence[Grader]) -> Composite:
    """The graders of a turn as one grader."""
    return Composite(type="composite", name=name, assertions=tuple(assertions))


async def grade_parts(
    options: Turns, counted: Mapping[int, TurnGraders], evidence: Evidence, grade_part: GradePart
) -> Grade:
    """The grade of a conversation whose turns, those that are counted, and whose whole are graded by `grade_part`.

    Raises `MeasurementError` as `grade_turns` does.
    """
    grades = await _turns(options, counted, evidence, grade_part)
    if options.conversation:
        grades.append(await grade_part("conversation", options.conversation, evidence_of_conversation(evidence)))
    if not grades:
        raise MeasurementError(f"{options.label} has nothing to check: no turn has graders")
    aggregator = Aggregator(type=AGGREGATORS[options.aggregation])
    try:
        grade = combined(options, aggregator, [Member(grade.name, grade) for grade in grades])
    except MeasurementError as error:
        grade = unmeasured(options, str(error), transient=error.transient)
    return with_members(grade, grades)


async def _turns(
    options: Turns, counted: Mapping[int, TurnGraders], evidence: Evidence, grade_part: GradePart
) -> list[Grade]:
    turns = turns_of(evidence.task, evidence.transcript)
    grades: list[Grade] = []
    for number, asked in counted.items():
        name = f"turn-{number}"
        if options.on_turn_failure == "stop" and grades and not grades[-1].passed:
            grades.append(_after(name, grades[-1]))
        elif number > len(turns) or not turns[number - 1].is_answered:
            grades.append(_nothing(name, "the agent did not answer this turn"))
        else:
            of_turn = evidence_of_turn(evidence, turns[number - 1], asked.expected_output)
            grades.append(await grade_part(name, asked.assertions, of_turn))
    return grades


def _after(name: str, previous: Grade) -> Grade:
    if previous.error is None:
        return _nothing(name, f"{previous.name} did not pass")
    error = f"{previous.name} was not measured"
    return Grade(name=name, type="composite", score=None, passed=False, error=error, transient=previous.transient)


def _nothing(name: str, reason: str) -> Grade:
    return Grade(name=name, type="composite", score=0.0, passed=False, checks=(Check(passed=False, message=reason),))
