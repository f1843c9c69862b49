"""The tool calls of a trial against those that are expected."""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

from passgate.tasks.errors import MeasurementError, Raw
from passgate.tasks.graders.evidence import Evidence, score_grade
from passgate.tasks.graders.tool_calls import call_text
from passgate.tasks.model.assertions import ArgsMatch, ExpectedCall, ToolTrajectory
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.json_values import MISSING, at_path, strictly_equal
from passgate.tasks.model.quotes import quote_json, raw
from passgate.tasks.model.transcript import ToolCall

Fits = Sequence[Sequence[int]]  # Which calls fit each expectation, by its position: their positions, in ascending order
UNKNOWN_DURATIONS: Final = "the agent does not report the durations of its tool calls, which `max_duration_ms` limits"
MOST_SHOWN: Final = 20  # Calls that are named one by one


async def grade_tool_trajectory(options: ToolTrajectory, evidence: Evidence) -> RawGrade:
    """Hold the calls against the expected ones, by `mode`. A call fits an expected one when its tool is the same, its
    arguments are as `args_match` says, and it took no longer than `max_duration_ms`.

    - `any_order`, `superset`: the share of expected calls that were made, each with a call of its own, and of
      `minimums` that were reached. Which call is counted for which expectation is chosen so that the most are met.
    - `in_order`: the share of expected calls that were made in this order, others between them. When more of them
      were made, in another order, 0.
    - `exact`: 1 when the calls are these, in number and order, else 0.
    - `subset`: 1 when no call was made but these, each as often as the agent liked, else 0. An empty list allows none.

    After AgentEvals; the score of `exact` and `subset` is not a share, for one call too many must not pass.

    Raises `MeasurementError` when nothing is expected, when the transcript does not hold every call or the duration of
    a limited call is not known. A trial that fails whatever these would be has failed; its score is then the least
    that it can be.
    """
    if options.minimums and options.mode != "any_order":
        raise MeasurementError(f"{options.label}: `minimums` works with mode any_order, not with {options.mode}")
    if not options.expected and not options.minimums and options.mode != "subset":
        raise MeasurementError(f"{options.label} has nothing to check: set `expected` or `minimums`")
    # A call that was refused was not made; what was tried is what counts where no others are allowed.
    calls = evidence.calls(refused=options.mode in {"exact", "subset"})
    (score, checks), (best, _) = (_compare(options, calls, when_unknown=fits) for fits in (False, True))
    one_too_many = (options.mode == "subset" and best == 0) or (
        options.mode == "exact" and len(calls) > len(options.expected)
    )
    # Then it fails whatever calls there are beside the known ones.
    evidence.require_every_call(unless=one_too_many and not options.negate)
    if score != best and (options.negate or score_grade(options, best).passed):
        raise evidence.unreported(UNKNOWN_DURATIONS)
    return score_grade(options, score, checks)


def _compare(
    options: ToolTrajectory, calls: Sequence[ToolCall], *, when_unknown: bool
) -> tuple[float, Sequence[RawCheck]]:
    """Return the score and the checks of it. `when_unknown`: whether a call of unknown duration fits."""
    usual = options.args_match
    fits = [
        [place for place, call in enumerate(calls) if call_fits(expected, usual, call, when_unknown=when_unknown)]
        for expected in options.expected
    ]
    if options.mode == "exact":
        wanted = len(options.expected)
        checks = [RawCheck(passed=len(calls) == wanted, message=f"{len(calls)} tool calls, expected {wanted}")]
        for place, expected in enumerate(options.expected):
            found = call_text(calls[place]) if place < len(calls) else "missing"
            message = raw(f"call {place + 1} is ", found, ", expected ", _expected_text(expected))
            checks.append(RawCheck(passed=place in fits[place], message=message))
        return float(all(check.passed for check in checks)), checks
    if options.mode == "subset":
        allowed = {place for places in fits for place in places}
        others = [call for place, call in enumerate(calls) if place not in allowed][:MOST_SHOWN]
        checks = [RawCheck(passed=False, message=raw(call_text(call), " is not expected")) for call in others]
        return float(not others), checks or [RawCheck(passed=True, message="the agent made only expected calls")]
    pairs = pair_in_order(fits) if options.mode == "in_order" else pair_most(fits)
    checks = []
    for place, expected in enumerate(options.expected):
        message = raw(_expected_text(expected), f" was {'' if place in pairs else 'not '}called")
        checks.append(RawCheck(passed=place in pairs, message=message))
    if options.mode == "in_order" and len(pair_most(fits)) > len(pairs):
        order = ", ".join(call.tool for call in calls[:MOST_SHOWN])
        message = raw(f"the expected calls were made in another order: {order}")
        return 0.0, [RawCheck(passed=False, message=message), *checks]
    for tool, least in options.minimums.items():
        count = sum(call.tool == tool for call in calls)
        message = raw(f"{tool}: {count} calls, expected at least {least}")
        checks.append(RawCheck(passed=count >= least, message=message))
    return sum(check.passed for check in checks) / len(checks), checks


def call_fits(expected: ExpectedCall, usual: ArgsMatch, call: ToolCall, *, when_unknown: bool = False) -> bool:
    """Return whether a call has the expected tool and arguments and took no longer than it may. `usual` says how
    arguments are compared where the expectation does not. Names of tools are compared as they are.
    """
    if call.tool != expected.tool:
        return False
    if expected.max_duration_ms is not None:
        in_time = when_unknown if call.duration_ms is None else call.duration_ms <= expected.max_duration_ms
        if not in_time:
            return False
    if expected.args is None or expected.args == "any":
        return True
    wanted, given, how = expected.args, call.arguments, expected.args_match or usual
    match how:
        case "ignore":
            return True
        case "exact":
            return strictly_equal(wanted, given)
        case "superset":
            return _holds(given, wanted)
        case "subset":
            return _holds(wanted, given)
        case tuple():
            # It names the fields that are compared, by dots one inside another. One without an expected value is not.
            values = {field: at_path(wanted, field) for field in how}
            return all(
                value is MISSING or strictly_equal(value, at_path(given, field)) for field, value in values.items()
            )
        case _:
            assert_never(how)


def _holds(whole: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    return all(name in whole and strictly_equal(value, whole[name]) for name, value in part.items())


def _expected_text(expected: ExpectedCall) -> Raw:
    """Return an expected call as messages show it: `search({"q": "a"}) within 200 ms`."""
    named = isinstance(expected.args, dict)
    limit = "" if expected.max_duration_ms is None else f" within {expected.max_duration_ms:g} ms"
    return raw(expected.tool, *(("(", quote_json(expected.args), ")") if named else ()), limit)


def pair_most(fits: Fits) -> dict[int, int]:
    """Return as many expectations as possible, each with a call of its own: a maximum matching by augmenting paths."""
    pairs: dict[int, int] = {}
    for expectation in range(len(fits)):
        pairs = _augment(pairs, expectation, fits)
    return pairs


def _augment(pairs: dict[int, int], expectation: int, fits: Fits) -> dict[int, int]:
    """Return the pairs with one more expectation, for which others may change theirs; the same if none can."""
    holders = {call: holder for holder, call in pairs.items()}
    seekers: dict[int, int] = {}  # By call: the expectation that has come upon it first
    waiting = deque([expectation])
    while waiting:
        seeker = waiting.popleft()
        for call in fits[seeker]:
            if call in seekers:
                continue
            seekers[call] = seeker
            if call in holders:
                waiting.append(holders[call])
                continue
            # From the free call back: each seeker takes what it has found and frees what it held.
            changed, free = dict(pairs), call
            while (holder := seekers[free]) != expectation:
                changed[holder], free = free, changed[holder]
            return changed | {expectation: free}
    return pairs


def pair_in_order(fits: Fits) -> dict[int, int]:
    """Return as many expectations as possible, in their order, each with a call behind that of the one before it. For
    each length the chain that ends first is kept: it leaves the most behind it.
    """
    # Of each length: the position of the last call, and the pairs.
    chains: list[tuple[int, tuple[tuple[int, int], ...]]] = [(-1, ())]
    for expectation, calls in enumerate(fits):
        # From the longest on, so that no chain gets the same expectation twice.
        for length, (end, pairs) in reversed(list(enumerate(chains))):
            place = bisect_right(calls, end)
            if place == len(calls):
                continue
            longer = (calls[place], (*pairs, (expectation, calls[place])))
            if length + 1 == len(chains):
                chains.append(longer)
            elif longer[0] < chains[length + 1][0]:
                chains[length + 1] = longer
    return dict(chains[-1][1])
