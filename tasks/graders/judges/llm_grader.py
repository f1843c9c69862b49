"""A judge model scores the trial: by criteria or a prompt of the suites' authors, or item by item of a rubric."""

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from passgate.tasks.errors import MeasurementError, Quote, Raw
from passgate.tasks.graders.checks import PASS_FROM, ROUNDING, scored
from passgate.tasks.graders.evidence import Evidence
from passgate.tasks.graders.judges import asking
from passgate.tasks.graders.judges.judge_prompt import Asked, judge_prompt, request_of
from passgate.tasks.graders.programs import grader_reply
from passgate.tasks.model.assertions import Criterion, LlmGrader, Rubrics
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.quotes import quote, raw, raw_join
from passgate.tasks.model.transcript import Usage

RESULTS_VARIABLE: Final = "EVALUATOR_RESULTS_JSON"  # What a composite's results are called in a prompt
_SHAPE: Final = f"""\
{asking.ONE_OBJECT}:
{{"score": a number from 0 (worst) to 1 (best), "assertions": [{{"text": "what you looked at", \
"passed": true or false, "evidence": "where it shows"}}], "reasoning": "one or two sentences"}}
At most 8 assertions."""
_AUTHORS_SHAPE: Final = f"""\
{asking.ONE_OBJECT}. It has a "score", a number from 0 (worst) to 1 (best), beside whatever else you are asked for."""
_TEXT: Final = {"type": "string"}
_ASSERTION: Final = asking.object_schema({"text": _TEXT, "passed": {"type": "boolean"}, "evidence": _TEXT})
_SCHEMA: Final = asking.object_schema(
    {"score": {"type": "number"}, "assertions": {"type": "array", "items": _ASSERTION}, "reasoning": _TEXT}
)
MOST_POINTS: Final = 10
_MARKS: Final = ("satisfied", "passed", "met")


def read_judge_reply(reply: str) -> grader_reply.GraderReply:
    """The score in a judge's reply: a JSON object alone, or alone in a code fence. Raises `UnusableReplyError`."""
    return asking.read_object(reply, grader_reply.read_document)


async def grade_by_judge(options: LlmGrader, evidence: Evidence, extra: Mapping[str, str] | None = None) -> RawGrade:
    """Ask the judge for a score. See `judge_prompt` for what it is asked and `read_document` for its reply.

    `extra` are further variables of the prompt, as a composite has them. Of several votes the median counts. An agent
    that wrote nothing has 0, and nobody is asked. Raises `MeasurementError` when there is no judge, nothing to mark by,
    or no usable reply, also after the judge was asked to repair it.
    """
    if asking.wrote_nothing(evidence.transcript) and not extra:
        return scored(options, 0, [RawCheck(passed=False, message=asking.WROTE_NOTHING)])
    prompt = judge_prompt(Asked(options.prompt, options.criteria, extra=extra or {}), evidence)
    if not prompt.is_authors and not prompt.has_criteria:
        raise MeasurementError("the LLM judge has no criteria: give the grader a `prompt` or the test `criteria`")
    # Authors ask for keys of their own, which a schema would forbid.
    shape, schema = (_AUTHORS_SHAPE, None) if prompt.is_authors else (_SHAPE, _SCHEMA)
    marks, usage = await asking.ask(evidence.judge, request_of(prompt, shape, schema), read_judge_reply, shape)
    grade = grader_reply.grade_of(options, grader_reply.median_reply(marks))
    return _with_votes(grade, [mark.score for mark in marks], usage)


def _with_votes(grade: RawGrade, scores: Sequence[float], usage: Usage) -> RawGrade:
    """A grade with the scores of its votes, where there are several, and what the judge used."""
    votes = tuple(scores) if len(scores) > 1 else ()
    return grade.model_copy(update={"votes": votes, "usage": usage})


class _Kind(NamedTuple):
    """A kind of items: what the judge is to do with them, and the entry of its reply, in words and as a JSON Schema."""

    how: str
    entry: str
    schema: dict[str, Any]


_KINDS: Final = {
    False: _Kind(
        "Say of each item whether it is satisfied. One that is marked as a contradiction is satisfied unless the "
        "agent's work contradicts it.",
        '{"id": "the item\'s id", "satisfied": true or false, "reasoning": "one sentence"}',
        asking.object_schema({"id": _TEXT, "satisfied": {"type": "boolean"}, "reasoning": _TEXT}),
    ),
    True: _Kind(
        "Give each criterion 0 to 10 points, as its score ranges say.",
        '{"id": "the criterion\'s id", "score": an integer from 0 to 10, "reasoning": "one sentence"}',
        asking.object_schema({"id": _TEXT, "score": {"type": "integer"}, "reasoning": _TEXT}),
    ),
}  # By whether items have points


class ItemMark(NamedTuple):
    """What was said of one item."""

    share: float  # 1 or 0 for yes or no, or the share of the points
    reason: Raw = ""


ItemMarks = Mapping[str, ItemMark]  # By the ids of the items; those that the judge left out are missing


def marks_in(document: Any, criteria: Sequence[Criterion]) -> ItemMarks:
    """The marks in the JSON document of a judge's reply: `{checks: [{id, satisfied, reasoning}]}`, with `score` from 0
    to 10 instead of `satisfied` for items with `score_ranges`. Ids that nobody asked for are ignored.

    Raises `ValueError` for a reply of another form, and when an item is marked twice.
    """
    checks = document.get("checks") if isinstance(document, Mapping) else None
    if not isinstance(checks, list) or not all(isinstance(check, Mapping) for check in checks):
        raise ValueError("it must have `checks`, a list of objects")
    by_id = {criterion.id: criterion for criterion in criteria}
    known = [check for check in checks if isinstance(check.get("id"), str) and check["id"] in by_id]
    marks: dict[str, ItemMark] = {}
    for check in known:
        item = by_id[check["id"]]
        satisfied = next((check[name] for name in _MARKS if name in check), None)
        if item.score_ranges:
            part = grader_reply.share(check.get("score"), "the `score` of an item", MOST_POINTS) / MOST_POINTS
        elif isinstance(satisfied, bool):
            part = float(satisfied)
        else:
            raise ValueError("the `satisfied` of an item must be true or false")
        marks[item.id] = ItemMark(part, quote(grader_reply.first_text(check, ("reasoning", "reason", "evidence"))))
    if len(marks) < len(known):
        raise ValueError("it marks an item twice")
    return marks


def combined_mark(marks: Sequence[ItemMark], criterion: Criterion) -> ItemMark:
    """One mark of several votes: the median of the points, or what more than half of the votes say."""
    if len(marks) == 1:
        return marks[0]
    middle = median(mark.share for mark in marks)
    result = middle if criterion.score_ranges else float(middle > 1 / 2)
    nearest = min(marks, key=lambda mark: abs(mark.share - result))
    return ItemMark(result, raw(nearest.reason, " " if nearest.reason else "", f"({len(marks)} votes)"))


LEFT_OUT: Final = ItemMark(0.0, "the judge did not mark this item")


async def grade_rubrics(options: Rubrics, evidence: Evidence) -> RawGrade:
    """Ask the judge to mark each item. The score is the sum of weight x share over the sum of the weights, where the
    share is 1 or 0 for yes or no, and points / 10 with `score_ranges`; an item that the judge leaves out has 0.

    A required item that has 0, or less than its `min_score`, is fatal. An agent that wrote nothing has 0 everywhere,
    and nobody is asked. Raises `MeasurementError` when there is no judge, when no weight is above 0, or when a reply is
    unusable or marks none of the items, also after the judge was asked to repair it.
    """
    if sum(item.weight for item in options.criteria) <= 0:
        raise MeasurementError(f"{options.label}: no item has a weight above 0")
    votes: list[float] = []
    usage = Usage()
    if asking.wrote_nothing(evidence.transcript):
        settled = [ItemMark(0.0, asking.WROTE_NOTHING)] * len(options.criteria)
    else:
        voted, usage = await _ask_about_items(options, evidence)
        every = [[vote.get(item.id, LEFT_OUT) for item in options.criteria] for vote in voted]
        votes = [weighted(options.criteria, marks) for marks in every]
        by_item = zip(zip(*every, strict=True), options.criteria, strict=True)
        settled = [combined_mark(marks, item) for marks, item in by_item]
    unmet = [
        item.id
        for item, mark in zip(options.criteria, settled, strict=True)
        # 0 does not meet an item, also where its `min_score` is 0.
        if item.required and not (mark.share > 0 and mark.share >= (item.min_score or 0) - ROUNDING)
    ]
    fatal = f"required items are not met: {', '.join(unmet)}" if unmet else ""
    grade = scored(options, weighted(options.criteria, settled), _item_checks(options, settled), fatal=fatal)
    return _with_votes(grade, votes, usage)


async def _ask_about_items(options: Rubrics, evidence: Evidence) -> tuple[list[ItemMarks], Usage]:
    """The marks of all votes. Raises `MeasurementError` as `grade_rubrics` does."""
    criteria = options.criteria

    def read(reply: str) -> ItemMarks:
        marks = asking.read_object(reply, lambda document: marks_in(document, criteria))
        if not marks:
            raise asking.UnusableReplyError("it marks none of the items", reply)
        return marks

    present = {bool(item.score_ranges) for item in criteria}
    kinds = [kind for with_points, kind in _KINDS.items() if with_points in present]
    entries = ", ".join(kind.entry for kind in kinds)
    shape = f'{asking.ONE_OBJECT}, one entry for each id you are given:\n{{"checks": [{entries}]}}'
    entry = kinds[0].schema if len(kinds) == 1 else {"anyOf": [kind.schema for kind in kinds]}
    schema = asking.object_schema({"checks": {"type": "array", "items": entry}})
    texts = {
        "rubrics": "\n".join(_item(item) for item in criteria if not item.score_ranges),
        "scoring_criteria": "\n\n".join(_item(item) for item in criteria if item.score_ranges),
    }
    sections = {title: text for title, text in texts.items() if text}
    plain = [item.model_dump(mode="json", exclude_defaults=True) for item in criteria]
    told = {"rubrics": "\n".join(sections.values()), "rubrics_json": json.dumps(plain, ensure_ascii=False, indent=2)}
    prompt = judge_prompt(Asked(options.prompt, sections=sections, told=told), evidence)
    request = request_of(prompt, " ".join([*(kind.how for kind in kinds), shape]), schema)
    return await asking.ask(evidence.judge, request, read, shape)


def _item(item: Criterion) -> str:
    """An item as the judge is told it."""
    if not item.score_ranges:
        notes = [f"weight: {item.weight:g}", *(["required"] if item.required else [])]
        if item.operator == "contradiction":
            notes.append("contradiction")
        return f"- [{item.id}] ({', '.join(notes)}): {item.outcome}"
    lines = [f"### Criterion: {item.id} (weight: {item.weight:g}){' (required)' if item.required else ''}"]
    if item.outcome:
        lines.append(f"Description: {item.outcome}")
    return "\n".join(
        [*lines, "Score ranges:", *(f"- {one.low} to {one.high}: {one.outcome}" for one in item.score_ranges)]
    )


def weighted(criteria: Sequence[Criterion], marks: Sequence[ItemMark]) -> float:
    """The weighted mean of the shares. Raises `ZeroDivisionError` when no weight is above 0."""
    pairs = zip(criteria, marks, strict=True)
    return sum(item.weight * mark.share for item, mark in pairs) / sum(item.weight for item in criteria)


def _item_checks(options: Rubrics, marks: Sequence[ItemMark]) -> list[RawCheck]:
    """A check per item. Points pass it from `min_score` on, 8 of 10 when it says none."""
    checks = []
    for item, mark in zip(options.criteria, marks, strict=True):
        least = item.min_score if item.min_score is not None and item.score_ranges else PASS_FROM
        points = f" ({mark.share * MOST_POINTS:g} of {MOST_POINTS})" if item.score_ranges else ""
        why = raw_join(": ", [part for part in (item.outcome, mark.reason) if part])
        message = Quote(raw(f"[{item.id}]{points}", " " if why else "", why))
        checks.append(RawCheck(passed=mark.share >= least - ROUNDING, message=message))
    return checks
