"""What a judge says of the items of a rubric."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from passgate.tasks.graders.judges.asking import ONE_OBJECT
from passgate.tasks.graders.judges.judge_reply import object_schema
from passgate.tasks.graders.programs.grader_reply import first_text, share
from passgate.tasks.graders.texts import shorten
from passgate.tasks.model.assertions import Criterion

MOST_POINTS: Final = 10
_MARKS: Final = ("satisfied", "passed", "met")
_TEXT: Final = {"type": "string"}
_YES_OR_NO: Final = object_schema({"id": _TEXT, "satisfied": {"type": "boolean"}, "reasoning": _TEXT})
_POINTS: Final = object_schema({"id": _TEXT, "score": {"type": "integer"}, "reasoning": _TEXT})


class ItemMark(NamedTuple):
    """What was said of one item."""

    share: float
    """1 or 0 for yes or no, or the share of the points."""
    reason: str = ""


ItemMarks = Mapping[str, ItemMark]
"""By the ids of the items; those that the judge left out are missing."""


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
    marks = {check["id"]: _mark(check, by_id[check["id"]]) for check in known}
    if len(marks) < len(known):
        raise ValueError("it marks an item twice")
    return marks


def _mark(check: Mapping[str, Any], criterion: Criterion) -> ItemMark:
    reason = shorten(first_text(check, ("reasoning", "reason", "evidence")))
    if criterion.score_ranges:
        return ItemMark(share(check.get("score"), "the `score` of an item", MOST_POINTS) / MOST_POINTS, reason)
    said = next((check[name] for name in _MARKS if name in check), None)
    if not isinstance(said, bool):
        raise ValueError("the `satisfied` of an item must be true or false")  # noqa: TRY004
    return ItemMark(float(said), reason)


def combined_mark(marks: Sequence[ItemMark], criterion: Criterion) -> ItemMark:
    """One mark of several votes: the median of the points, or what more than half of the votes say."""
    if len(marks) == 1:
        return marks[0]
    middle = median(mark.share for mark in marks)
    result = middle if criterion.score_ranges else float(middle > 1 / 2)
    nearest = min(marks, key=lambda mark: abs(mark.share - result))
    return ItemMark(result, f"{nearest.reason} ({len(marks)} votes)".strip())


def shape_of(criteria: Sequence[Criterion]) -> str:
    """What a reply has to look like, in words."""
    entries = []
    if any(not criterion.score_ranges for criterion in criteria):
        entries.append('{"id": "the item\'s id", "satisfied": true or false, "reasoning": "one sentence"}')
    if any(criterion.score_ranges for criterion in criteria):
        entries.append('{"id": "the criterion\'s id", "score": an integer from 0 to 10, "reasoning": "one sentence"}')
    return f'{ONE_OBJECT}, one entry for each id you are given:\n{{"checks": [{", ".join(entries)}]}}'


def schema_of(criteria: Sequence[Criterion]) -> dict[str, Any]:
    """The JSON Schema of a reply."""
    kinds = [_POINTS if with_points else _YES_OR_NO for with_points in {bool(item.score_ranges) for item in criteria}]
    entry = kinds[0] if len(kinds) == 1 else {"anyOf": [_YES_OR_NO, _POINTS]}
    return object_schema({"checks": {"type": "array", "items": entry}})
