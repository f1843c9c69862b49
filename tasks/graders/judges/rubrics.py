"""A judge model marks the items of a rubric, each yes or no, or with 0 to 10 points."""

import json
from collections.abc import Callable, Sequence
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.checks import PASS_FROM, ROUNDING, scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.judges.asking import WROTE_NOTHING, Answers, Question, ask, wrote_nothing
from passgate.tasks.graders.judges.judge_prompt import Asked, judge_prompt, request_of
from passgate.tasks.graders.judges.judge_reply import read_object
from passgate.tasks.graders.judges.rubric_reply import (
    MOST_POINTS,
    ItemMark,
    ItemMarks,
    combined_mark,
    marks_in,
    schema_of,
    shape_of,
)
from passgate.tasks.graders.texts import shorten
from passgate.tasks.model.assertions import Criterion, Rubrics
from passgate.tasks.model.grade import Check, Grade

ReadMarks = Callable[[str, Sequence[Criterion]], ItemMarks]
"""The marks in a judge's reply. Raises `UnusableReplyError`."""
LEFT_OUT: Final = ItemMark(0.0, "the judge did not mark this item")
_YES_OR_NO: Final = """\
Say of each item whether it is satisfied. One that is marked as a contradiction is satisfied unless the agent's work \
contradicts it."""
_POINTS: Final = "Give each criterion 0 to 10 points, as its score ranges say."


async def grade_rubrics(options: Rubrics, evidence: Evidence) -> Grade:
    """Ask the judge to mark each item. The score is the sum of weight x share over the sum of the weights, where the
    share is 1 or 0 for yes or no, and points / 10 with `score_ranges`; an item that the judge leaves out has 0.

    A required item that has 0, or less than its `min_score`, is fatal. An agent that wrote nothing has 0 everywhere,
    and nobody is asked. Raises `MeasurementError` when there is no judge, when no weight is above 0, or when a reply is
    unusable or marks none of the items, also after the judge was asked to repair it.
    """
    weights = sum(item.weight for item in options.criteria)
    if weights <= 0:
        raise MeasurementError(f"{options.label}: no item has a weight above 0")
    if wrote_nothing(evidence.transcript):
        nothing = [ItemMark(0.0, WROTE_NOTHING)] * len(options.criteria)
        return scored(options, 0, item_checks(options, nothing), fatal=_fatal(options, nothing))
    answers = await ask_about_items(options, evidence, _read_some)
    marks = [_settled(answers, item) for item in options.criteria]
    score = weighted(options.criteria, marks)
    grade = scored(options, score, item_checks(options, marks), fatal=_fatal(options, marks))
    return grade.model_copy(update={"votes": _votes(options, answers), "usage": answers.usage})


async def ask_about_items(options: Rubrics, evidence: Evidence, read: ReadMarks) -> Answers[ItemMarks]:
    """The marks of all votes, as `read` takes them from a reply. Raises `MeasurementError` as `grade_rubrics` does."""
    shape, schema = shape_of(options.criteria), schema_of(options.criteria)
    sections = rubric_sections(options.criteria)
    told = {"rubrics": "\n".join(sections.values()), "rubrics_json": _as_json(options.criteria)}
    prompt = judge_prompt(Asked(options.prompt, sections=sections, told=told), evidence)
    request = request_of(prompt, f"{_how(options.criteria)} {shape}", schema)
    return await ask(
        evidence.judge, Question(request=request, read=lambda reply: read(reply, options.criteria), shape=shape)
    )


def rubric_sections(criteria: Sequence[Criterion]) -> dict[str, str]:
    """The items as the judge is told them: those with yes or no, then those with points."""
    sections = {
        "rubrics": "\n".join(_item(item) for item in criteria if not item.score_ranges),
        "scoring_criteria": "\n\n".join(_scoring_item(item) for item in criteria if item.score_ranges),
    }
    return {title: text for title, text in sections.items() if text}


def weighted(criteria: Sequence[Criterion], marks: Sequence[ItemMark]) -> float:
    """The weighted mean of the shares. Raises `ZeroDivisionError` when no weight is above 0."""
    pairs = zip(criteria, marks, strict=True)
    return sum(item.weight * mark.share for item, mark in pairs) / sum(item.weight for item in criteria)


def item_checks(options: Rubrics, marks: Sequence[ItemMark]) -> list[Check]:
    """A check per item. Points pass it from `min_score` on, 8 of 10 when it says none."""
    return [_check(item, mark) for item, mark in zip(options.criteria, marks, strict=True)]


def _check(item: Criterion, mark: ItemMark) -> Check:
    least = item.min_score if item.min_score is not None and item.score_ranges else PASS_FROM
    points = f" ({mark.share * MOST_POINTS:g} of {MOST_POINTS})" if item.score_ranges else ""
    parts = [item.outcome or "", mark.reason]
    message = f"[{item.id}]{points} {': '.join(part for part in parts if part)}".rstrip()
    return Check(passed=mark.share >= least - ROUNDING, message=shorten(message))


def _fatal(options: Rubrics, marks: Sequence[ItemMark]) -> str:
    pairs = zip(options.criteria, marks, strict=True)
    unmet = [item.id for item, mark in pairs if item.required and not _is_met(item, mark)]
    return f"required items are not met: {', '.join(unmet)}" if unmet else ""


def _is_met(item: Criterion, mark: ItemMark) -> bool:
    return mark.share > 0 and mark.share >= (item.min_score or 0) - ROUNDING


def _settled(answers: Answers[ItemMarks], item: Criterion) -> ItemMark:
    return combined_mark([marks.get(item.id, LEFT_OUT) for marks in answers.marks], item)


def _votes(options: Rubrics, answers: Answers[ItemMarks]) -> tuple[float, ...]:
    if len(answers.marks) == 1:
        return ()
    votes = ([marks.get(item.id, LEFT_OUT) for item in options.criteria] for marks in answers.marks)
    return tuple(weighted(options.criteria, vote) for vote in votes)


def _read_some(reply: str, criteria: Sequence[Criterion]) -> ItemMarks:
    return read_object(reply, lambda document: _some(marks_in(document, criteria)))


def _some(marks: ItemMarks) -> ItemMarks:
    if not marks:
        raise ValueError("it marks none of the items")
    return marks


def _how(criteria: Sequence[Criterion]) -> str:
    kinds = {bool(item.score_ranges) for item in criteria}
    return " ".join(how for with_points, how in ((False, _YES_OR_NO), (True, _POINTS)) if with_points in kinds)


def _item(item: Criterion) -> str:
    notes = [f"weight: {item.weight:g}", *(["required"] if item.required else [])]
    if item.operator == "contradiction":
        notes.append("contradiction")
    return f"- [{item.id}] ({', '.join(notes)}): {item.outcome}"


def _scoring_item(item: Criterion) -> str:
    required = " (required)" if item.required else ""
    return "\n".join(
        [
            f"### Criterion: {item.id} (weight: {item.weight:g}){required}",
            *([f"Description: {item.outcome}"] if item.outcome else []),
            "Score ranges:",
            *(f"- {one.low} to {one.high}: {one.outcome}" for one in item.score_ranges),
        ]
    )


def _as_json(criteria: Sequence[Criterion]) -> str:
    plain = [item.model_dump(mode="json", exclude_defaults=True) for item in criteria]
    return json.dumps(plain, ensure_ascii=False, indent=2)
