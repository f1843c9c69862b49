"""Ask a judge model to grade a trial by a rubric: item by item, or with one score."""

import json
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from passgate.tasks.errors import MeasurementError, Quote, Raw
from passgate.tasks.graders import judge
from passgate.tasks.graders.evidence import ROUNDING, Evidence, checks_grade, score_grade
from passgate.tasks.graders.grader_reply import GraderReply, first_text, median_reply, read_document, share
from passgate.tasks.graders.judge_prompt import JudgePrompt, conversation_prompt, judge_prompt
from passgate.tasks.graders.workspace import UnusableFileError, read_text
from passgate.tasks.model.assertions import Criterion, Rubrics
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.grader_options import PASS_FROM
from passgate.tasks.model.graders import LlmRubric
from passgate.tasks.model.quotes import quote, raw, raw_join
from passgate.tasks.model.transcript import Usage

MOST_POINTS: Final = 10
_NUMBER: Final = (int, float)
# The keys of replies, as they are asked for and as recorded replies have them.
_ITEM_KEYS: Final = (
    {"id": str, "satisfied": bool, "reasoning": str},
    {"assertion": int, "passed": bool, "reason": str},
)
_SCORE_KEYS: Final = ({"score": _NUMBER, "assertions": list, "reasoning": str}, {"score": _NUMBER, "reason": str})


async def grade_rubric(options: LlmRubric, evidence: Evidence) -> RawGrade:
    """Ask the judge; the trial passes with a score of at least the threshold.

    The score is the share of assertions that most votes find true, or the median of the votes' scores where there are
    none. An agent that wrote nothing has 0, and nobody is asked. Raises `MeasurementError` when there is no judge, when
    the rubric cannot be read, or when a reply is unusable, also after the judge was asked to repair it.
    """
    if judge.wrote_nothing(evidence.transcript):
        return checks_grade(options, [RawCheck(passed=False, message=judge.WROTE_NOTHING)])
    items = [Criterion(id=str(number), outcome=text) for number, text in enumerate(options.assertions, start=1)]
    try:
        rubric = read_text(evidence.suites_folder, options.rubric) if options.is_file else options.rubric
    except UnusableFileError as error:
        raise MeasurementError(f"the rubric cannot be read: {error}") from error
    if options.is_file:
        rubric = rubric.replace("\r\n", "\n")  # A checkout with other line ends has the same rubric
    prompt = conversation_prompt(rubric.strip(), options.assertions, "\n".join(map(_item_text, items)), evidence)
    if items:
        results, scores, usage = await _ask_about_items(prompt, items, evidence, every_result)
        score = item_mean(items, results)
        checks = [
            RawCheck(passed=result.share > 0, message=Quote(raw(f"{item.outcome}: ", result.reason)))
            for item, result in zip(items, results, strict=True)
        ]
    else:
        replies, usage = await judge.ask(evidence.judge, prompt, judge.SCORE_SHAPE, judge.SCORE_SCHEMA, read_score)
        reply, scores = median_reply(replies), [one.score for one in replies]
        score = reply.score
        message = raw(f"score {score:.3g}, expected at least {options.threshold:g}: ", reply.reason)
        checks = [RawCheck(passed=score >= options.threshold - ROUNDING, message=message), *reply.checks]
    passed = score >= options.threshold - ROUNDING
    grade = RawGrade(name=options.label, type=options.type, score=score, passed=passed, checks=tuple(checks))
    return judge.add_votes(grade, scores, usage)


def read_score(document: Any) -> GraderReply:
    """Return the score in a judge's reply that says nothing else; else raise `ValueError`."""
    _require_keys(document, *_SCORE_KEYS)
    return read_document(document)


def _require_keys(entry: Any, *forms: Mapping[str, Any]) -> None:
    """Raise `ValueError` unless a value is an object with just the keys of one of these forms, each of its type. A key
    that nobody asked for is not repeated: it may be made to be read.
    """
    if not isinstance(entry, Mapping):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - one error for every unusable reply
    if entry.keys() - {key for form in forms for key in form}:
        raise ValueError("it has a key that was not asked for")
    if not any(
        entry.keys() == form.keys() and all(isinstance(entry[key], form[key]) for key in form) for form in forms
    ):
        raise ValueError(f"it must have the keys {', '.join(forms[0])}, each of its type")


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
        judge.object_schema({"id": judge.TEXT, "satisfied": {"type": "boolean"}, "reasoning": judge.TEXT}),
    ),
    True: _Kind(
        "Give each criterion 0 to 10 points, as its score ranges say.",
        '{"id": "the criterion\'s id", "score": an integer from 0 to 10, "reasoning": "one sentence"}',
        judge.object_schema({"id": judge.TEXT, "score": {"type": "integer"}, "reasoning": judge.TEXT}),
    ),
}  # By whether items have points


class ItemResult(NamedTuple):
    """What the judge found of one item."""

    share: float  # 1 or 0 for yes or no, or the share of the points
    reason: Raw = ""


ItemResults = Mapping[str, ItemResult]  # By the ids of the items; those that the judge left out are missing
LEFT_OUT: Final = ItemResult(0.0, "the judge did not grade this item")


def item_results(document: Any, criteria: Sequence[Criterion]) -> ItemResults:
    """Return the results in a judge's reply: `{checks: [{id, satisfied, reasoning}]}`, with `score` from 0 to 10 for
    `satisfied` where an item has `score_ranges`. Ids that were not asked for are ignored.

    Raises `ValueError` for a reply of another form, and when an item is graded twice.
    """
    checks = document.get("checks") if isinstance(document, Mapping) else None
    if not isinstance(checks, list) or not all(isinstance(check, Mapping) for check in checks):
        raise ValueError("it must have `checks`, a list of objects")
    by_id = {criterion.id: criterion for criterion in criteria}
    results: dict[str, ItemResult] = {}
    for check in checks:
        # Replies that were recorded for numbered assertions have their number.
        item = by_id.get(str(check.get("assertion", check.get("id"))))
        if item is None:
            continue
        if item.id in results:
            raise ValueError("it grades an item twice")
        satisfied = next((check[name] for name in ("satisfied", "passed", "met") if name in check), None)
        if item.score_ranges:
            part = share(check.get("score"), "the `score` of an item", MOST_POINTS) / MOST_POINTS
        elif isinstance(satisfied, bool):
            part = float(satisfied)
        else:
            raise ValueError("the `satisfied` of an item must be true or false")
        results[item.id] = ItemResult(part, quote(first_text(check, ("reasoning", "reason", "evidence"))))
    return results


def every_result(document: Any, items: Sequence[Criterion]) -> ItemResults:
    """Return the results of a reply that grades every item once and says nothing else; else raise `ValueError`."""
    results = item_results(document, items)
    _require_keys(document, {"checks": list})
    for entry in document["checks"]:
        _require_keys(entry, *_ITEM_KEYS)
    if not len(results) == len(document["checks"]) == len(items):
        raise ValueError(f"it must grade each of the {len(items)} assertions once")
    return results


def majority_result(results: Sequence[ItemResult], criterion: Criterion) -> ItemResult:
    """Return one result of several votes: the median of the points, or what more than half of the votes say."""
    if len(results) == 1:
        return results[0]
    middle = median(result.share for result in results)
    share = middle if criterion.score_ranges else float(middle > 1 / 2)
    nearest = min(results, key=lambda result: abs(result.share - share))
    true = sum(result.share > 0 for result in results)
    votes = f"({len(results)} votes)" if criterion.score_ranges else f"({true} of {len(results)} votes: true)"
    return ItemResult(share, raw(nearest.reason, " " if nearest.reason else "", votes))


def item_mean(criteria: Sequence[Criterion], results: Sequence[ItemResult]) -> float:
    """Return the weighted mean of the shares. Raises `ZeroDivisionError` when no weight is above 0."""
    pairs = zip(criteria, results, strict=True)
    return sum(item.weight * result.share for item, result in pairs) / sum(item.weight for item in criteria)


async def _ask_about_items(
    prompt: JudgePrompt,
    criteria: Sequence[Criterion],
    evidence: Evidence,
    read: Callable[[Any, Sequence[Criterion]], ItemResults],
) -> tuple[list[ItemResult], list[float], Usage]:
    """Return one result for each item, the score of each vote, and what the judge used."""
    present = {bool(item.score_ranges) for item in criteria}
    kinds = [kind for with_points, kind in _KINDS.items() if with_points in present]
    entries = ", ".join(kind.entry for kind in kinds)
    shape = f'{judge.ONE_OBJECT}, one entry for each id you are given:\n{{"checks": [{entries}]}}'
    entry = kinds[0].schema if len(kinds) == 1 else {"anyOf": [kind.schema for kind in kinds]}
    schema = judge.object_schema({"checks": {"type": "array", "items": entry}})

    def read_results(document: Any) -> ItemResults:
        results = read(document, criteria)
        if not results:
            raise ValueError("it grades none of the items")
        return results

    how = " ".join(kind.how for kind in kinds)
    voted, usage = await judge.ask(evidence.judge, prompt, shape, schema, read_results, how=how)
    every = [[vote.get(item.id, LEFT_OUT) for item in criteria] for vote in voted]
    results = [majority_result(of_item, item) for of_item, item in zip(zip(*every, strict=True), criteria, strict=True)]
    return results, [item_mean(criteria, of_vote) for of_vote in every], usage


async def grade_rubrics(options: Rubrics, evidence: Evidence) -> RawGrade:
    """Ask the judge to grade each item. The score is the sum of weight x share over the sum of the weights, where the
    share is 1 or 0 for yes or no, and points / 10 with `score_ranges`; an item that the judge leaves out has 0.

    A required item that has 0, or less than its `min_score`, is fatal. An agent that wrote nothing has 0 everywhere,
    and nobody is asked. Raises `MeasurementError` when there is no judge, when no weight is above 0, or when a reply is
    unusable or grades none of the items, also after the judge was asked to repair it.
    """
    criteria = options.criteria
    if sum(item.weight for item in criteria) <= 0:
        raise MeasurementError(f"{options.label}: no item has a weight above 0")
    results, votes, usage = [ItemResult(0.0, judge.WROTE_NOTHING)] * len(criteria), list[float](), Usage()
    if not judge.wrote_nothing(evidence.transcript):
        prompt = _items_prompt(options, evidence)
        results, votes, usage = await _ask_about_items(prompt, criteria, evidence, item_results)
    unmet, checks = [], []
    for item, result in zip(criteria, results, strict=True):
        # 0 does not meet an item, also where its `min_score` is 0.
        if item.required and not (result.share > 0 and result.share >= (item.min_score or 0) - ROUNDING):
            unmet.append(item.id)
        least = item.min_score if item.min_score is not None and item.score_ranges else PASS_FROM
        points = f" ({result.share * MOST_POINTS:g} of {MOST_POINTS})" if item.score_ranges else ""
        why = raw_join(": ", [part for part in (item.outcome, result.reason) if part])
        message = Quote(raw(f"[{item.id}]{points}", " " if why else "", why))
        checks.append(RawCheck(passed=result.share >= least - ROUNDING, message=message))
    fatal = f"required items are not met: {', '.join(unmet)}" if unmet else ""
    return judge.add_votes(score_grade(options, item_mean(criteria, results), checks, fatal=fatal), votes, usage)


def _items_prompt(options: Rubrics, evidence: Evidence) -> JudgePrompt:
    criteria = options.criteria
    texts = {
        "rubrics": "\n".join(_item_text(item) for item in criteria if not item.score_ranges),
        "scoring_criteria": "\n\n".join(_item_text(item) for item in criteria if item.score_ranges),
    }
    sections = {title: text for title, text in texts.items() if text}
    plain = [item.model_dump(mode="json", exclude_defaults=True) for item in criteria]
    words = {"rubrics": "\n".join(sections.values()), "rubrics_json": json.dumps(plain, ensure_ascii=False, indent=2)}
    return judge_prompt(evidence, options.prompt, sections=sections, words=words)


def _item_text(item: Criterion) -> str:
    """Return an item as the judge receives it."""
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
