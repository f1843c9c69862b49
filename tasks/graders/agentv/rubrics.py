"""Rubrics as AgentV scores them: for comparison, with the holes that it has."""

from collections.abc import Sequence

from passgate.tasks.graders.agentv.llm_grader import within
from passgate.tasks.graders.checks import scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.judges.asking import WROTE_NOTHING, Answers, wrote_nothing
from passgate.tasks.graders.judges.llm_grader import with_votes
from passgate.tasks.graders.judges.rubrics import (
    ItemMark,
    ItemMarks,
    ask_about_items,
    combined_mark,
    item_checks,
    marks_in,
    weighted,
)
from passgate.tasks.model.assertions import Criterion, Rubrics
from passgate.tasks.model.grade import Check, Grade


async def grade_rubrics_as_agentv(options: Rubrics, evidence: Evidence) -> Grade:
    """The weighted mean over those items alone that the judge marks, 0 when there is none; `required` and `min_score`
    change nothing. Raises `MeasurementError` when there is no judge or no usable reply.
    """
    if wrote_nothing(evidence.transcript):
        return scored(options, 0, [Check(passed=False, message=WROTE_NOTHING)])
    answers = await ask_about_items(options, evidence, _read)
    pairs = [(item, marks) for item in options.criteria if (marks := _marks_of(item, answers))]
    marked = options.model_copy(update={"criteria": tuple(item for item, _ in pairs)})
    settled = [combined_mark(marks, item) for item, marks in pairs]
    grade = scored(options, _score(marked.criteria, settled), item_checks(marked, settled))
    return with_votes(grade, (), answers)


def _read(reply: str, criteria: Sequence[Criterion]) -> ItemMarks:
    return within(reply, lambda document: marks_in(document, criteria))


def _marks_of(item: Criterion, answers: Answers[ItemMarks]) -> list[ItemMark]:
    return [marks[item.id] for marks in answers.marks if item.id in marks]


def _score(criteria: Sequence[Criterion], marks: Sequence[ItemMark]) -> float:
    return weighted(criteria, marks) if any(item.weight for item in criteria) else 0.0
