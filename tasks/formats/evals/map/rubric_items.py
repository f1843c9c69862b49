"""The items of rubrics: texts and mappings, points with meanings in both of their forms."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from passgate.tasks.formats.evals.map.built import build
from passgate.tasks.formats.evals.read.node import Complaints, Key, Keys, Node, Parts, take_apart
from passgate.tasks.formats.schema_check import Kind, is_kind, shown, wrong_kind
from passgate.tasks.model.assertions import Criterion, ScoreRange

HIGHEST = 10
"""Points go from 0 to 10."""

ITEM_KEYS: Keys = {
    "id": Key((Kind.TEXT,), says="Its name in reports, unique in the rubric."),
    "outcome": Key((Kind.TEXT,), spellings=("criteria", "expected_outcome", "description")),
    "weight": Key((Kind.NUMBER,), says="Its part in the score."),
    "required": Key((Kind.TRUTH,)),
    "min_score": Key((Kind.NUMBER,)),
    "required_min_score": Key(
        (Kind.NUMBER,), says="The least of its 10 points that meets it; without it the trial fails."
    ),
    "score_ranges": Key(
        (Kind.MAPPING, Kind.LIST),
        says="What the points from 0 to 10 mean: by the lowest of each span, or as a list of spans.",
    ),
    "operator": Key((Kind.TEXT,)),
}
RANGE_KEYS: Keys = {
    "score_range": Key(
        (Kind.LIST,), items=(Kind.WHOLE,), needed=True, says="The lowest and the highest of the points."
    ),
    "outcome": Key((Kind.TEXT,), spellings=("expected_outcome", "description"), needed=True, says="What they mean."),
}


def read_criteria(node: Node, complaints: Complaints) -> tuple[Criterion, ...]:
    """The items of a list of a rubric. Those without an `id` are `rubric-1` and so on, by their place in the list.

    What is wrong goes to the complaints, and then items may be missing from the answer.
    """
    return criteria_of(list(node.items()), node, complaints)


def criteria_of(items: Sequence[Node], node: Node, complaints: Complaints) -> tuple[Criterion, ...]:
    """The same for items that stand anywhere; `node` is where it is told that there are none."""
    if not items:
        complaints.problems.append(node.problem("invalid rubric: must not be empty"))
    read = [(item, _criterion(item, f"rubric-{number}", complaints)) for number, item in enumerate(items, 1)]
    known = [(item, criterion) for item, criterion in read if criterion is not None]
    seen: set[str] = set()
    for item, criterion in known:
        if criterion.id in seen:
            message = f"invalid rubric: the id {criterion.id!r} stands here a second time"
            complaints.problems.append(item.problem(message))
        seen.add(criterion.id)
    return tuple(criterion for _, criterion in known)


def _criterion(item: Node, default_id: str, complaints: Complaints) -> Criterion | None:
    message = wrong_kind(item.value, (Kind.TEXT, Kind.MAPPING))
    if message is not None:
        complaints.problems.append(item.problem(f"invalid rubric: {message}"))
        return None
    if is_kind(item.value, Kind.TEXT):
        return build(Criterion, {"id": item.with_value(default_id), "outcome": item}, item, complaints)
    parts = take_apart(item, ITEM_KEYS, complaints)
    fields = {"id": item.with_value(default_id), **parts.only("id", "outcome", "weight", "required", "operator")}
    fields |= _least(parts, complaints)
    ranges = parts.get("score_ranges")
    if ranges is not None:
        fields["score_ranges"] = ranges.with_value(_ranges(ranges, complaints))
    return build(Criterion, fields, item, complaints) if parts.sound else None


def _least(parts: Parts, complaints: Complaints) -> dict[str, Node]:
    """`min_score` as a share. Of `required_min_score` in points follows `required`, unless the file says otherwise."""
    share, points = parts.get("min_score"), parts.get("required_min_score")
    if points is None or not is_kind(points.value, Kind.NUMBER):
        return {"min_score": share} if share is not None else {}
    if not 0 <= points.value <= HIGHEST:
        message = f"must be from 0 to {HIGHEST}, not {shown(points.value)}"
        complaints.problems.append(points.problem(message))
        return {}
    if share is not None and share.value != points.value / HIGHEST:
        message = "'min_score' (of 1) and 'required_min_score' (of 10) differ; keep one of them"
        complaints.problems.append(points.problem(message, at_key=True))
    required = {} if parts.get("required") else {"required": points.with_value(True)}
    return {"min_score": points.with_value(points.value / HIGHEST), **required}


def _ranges(node: Node, complaints: Complaints) -> tuple[ScoreRange, ...]:
    """The spans of points in order. They must cover 0 to 10 without overlap."""
    before = len(complaints.problems)
    read = _from_list if isinstance(node.value, list) else _from_bounds
    ranges = sorted(read(node, complaints), key=lambda span: span.low)
    if len(complaints.problems) == before:
        message = _gap(ranges)
        if message:
            complaints.problems.append(node.problem(f"invalid rubric: {message}"))
    return tuple(ranges)


def _gap(ranges: Sequence[ScoreRange]) -> str:
    """What keeps spans in order from covering 0 to 10, empty where nothing does."""
    expected = 0
    for span in ranges:
        if span.high < span.low:
            return f"the span from {span.low} to {span.high} is empty"
        if span.low != expected:
            start = "the score ranges must start at 0" if expected == 0 else f"the next must start at {expected}"
            return f"{start}, not at {span.low}"
        expected = span.high + 1
    return "" if expected == HIGHEST + 1 else f"the score ranges must go up to {HIGHEST}"


def _from_list(node: Node, complaints: Complaints) -> Iterator[ScoreRange]:
    for item in node.items():
        message = wrong_kind(item.value, (Kind.MAPPING,))
        if message is not None:
            complaints.problems.append(item.problem(f"invalid rubric: {message}"))
            continue
        parts = take_apart(item, RANGE_KEYS, complaints)
        span = parts.get("score_range")
        if not parts.sound or span is None:
            continue
        if len(span.value) != 2:
            complaints.problems.append(span.problem("invalid rubric: expected the lowest and the highest score"))
            continue
        fields = {"low": span.child(0), "high": span.child(1), **parts.only("outcome")}
        read = build(ScoreRange, fields, item, complaints)
        if read is not None:
            yield read


def _from_bounds(node: Node, complaints: Complaints) -> Iterator[ScoreRange]:
    """Spans by their lowest points: each ends where the next begins."""
    bounds: dict[int, Node] = {}
    for key in node.value:
        part, bound = node.child(key), str(key)
        message = wrong_kind(part.value, (Kind.TEXT,))
        if not bound.isascii() or not bound.isdecimal() or len(bound) > 2 or int(bound) > HIGHEST:
            message = f"invalid rubric: a score range is named by a whole number from 0 to {HIGHEST}, not {bound!r}"
        if message is None and int(bound) in bounds:
            message = f"invalid rubric: the score {int(bound)} stands here a second time"
        if message is not None:
            complaints.problems.append(part.problem(message, at_key=True))
        else:
            bounds[int(bound)] = part
    for low, following in pairwise([*sorted(bounds), HIGHEST + 1]):
        fields = {"low": node.with_value(low), "high": node.with_value(following - 1), "outcome": bounds[low]}
        read = build(ScoreRange, fields, bounds[low], complaints)
        if read is not None:
            yield read
