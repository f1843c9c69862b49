"""Expected tool calls: what each mode lets pass, and what it does not."""

from typing import Any

import pytest

from passgate.tasks.graders.tool_trajectory import pair_in_order, pair_most
from passgate.tasks.model.transcript import ToolCall, Transcript
from tests.unit.graders.options import tools
from tests.unit.graders.trials import Graded, called

SEARCHES = called(("search", {"q": "a", "limit": 5}), ("read", {"id": 1}), ("search", {"q": "b", "limit": 5}), "answer")
MODES = ["any_order", "in_order", "exact", "superset", "subset"]
KEY = "sk-ant-" + "a1B2" * 24


def options(**fields: Any) -> dict[str, Any]:
    return {"type": "tool_trajectory", **fields}


def timed(*calls: tuple[str, float | None]) -> Transcript:
    return called(*(ToolCall(tool=tool, duration_ms=duration) for tool, duration in calls))


@pytest.mark.parametrize(
    ("fields", "score"),
    [
        ({"expected": tools("answer", "search")}, 1),
        ({"expected": tools("search", "search", "search")}, 2 / 3),
        ({"expected": tools("search", "missing"), "minimums": {"read": 1}}, 2 / 3),
        ({"expected": [{"tool": "search"}, {"tool": "search", "args": {"q": "a", "limit": 5}}]}, 1),
    ],
)
async def test_any_order_is_the_mode_when_none_is_given(fields: dict[str, Any], score: float, graded: Graded) -> None:
    found = await graded(options(**fields), SEARCHES)
    assert found.score == pytest.approx(score)
    assert found.passed is (score >= 0.8)


@pytest.mark.parametrize(
    ("mode", "names", "score"),
    [
        ("in_order", "search answer", 1),
        ("in_order", "search read search search answer", 4 / 5),
        *(("in_order", "search missing", 1 / 2), ("in_order", "missing answer read", 0)),
        ("exact", "search read search answer", 1),
        *(("superset", "read read", 1 / 2), ("subset", "search read answer", 1), ("subset", "", 0)),
    ],
)
async def test_the_score_of_each_mode(mode: str, names: str, score: float, graded: Graded) -> None:
    found = await graded(options(mode=mode, expected=tools(*names.split())), SEARCHES)
    assert (found.score, found.passed) == (pytest.approx(score), score >= 0.8)


async def test_other_arguments_do_not_use_a_call_up(graded: Graded) -> None:
    expected = [{"tool": "search", "args": {"q": "b"}}, {"tool": "answer"}]
    assert (await graded(options(mode="in_order", args_match="superset", expected=expected), SEARCHES)).score == 1


async def test_a_check_says_what_is_not_expected(graded: Graded) -> None:
    found = await graded(options(mode="exact", expected=tools("a", "b")), called("a", "c"))
    assert [check.message for check in found.checks if not check.passed] == ["call 2 is c({}), expected b"]
    found = await graded(options(mode="subset", expected=tools("read")), called(*["read"] * 9, "delete"))
    assert not found.passed
    assert found.checks[0].message == "delete({}) is not expected"


async def test_subset_without_calls_is_met(graded: Graded) -> None:
    assert (await graded(options(mode="subset", expected=tools("read")))).passed
    assert (await graded(options(mode="subset"))).passed


@pytest.mark.parametrize(
    ("args", "args_match", "fits"),
    [
        *(({"q": "a", "limit": 5}, "exact", True), ({"q": "a"}, "exact", False), ({"q": "a"}, "superset", True)),
        ({"q": "a", "limit": 5, "page": 1}, "subset", True),
        *(({"q": "a"}, "subset", False), ({"q": "z"}, "ignore", True), ({"q": "a", "limit": 99}, ["q"], True)),
        ({"q": "a", "limit": 99}, ["q", "limit"], False),
        *(({"q": "a"}, ["q", "page"], True), ("any", "exact", True), (None, "exact", True)),
        ({"q": "any"}, "superset", False),
    ],
)
async def test_how_arguments_are_compared(args: Any, args_match: Any, fits: bool, graded: Graded) -> None:
    transcript = called(("search", {"q": "a", "limit": 5}))
    by_item = options(expected=[{"tool": "search", "args": args, "args_match": args_match}])
    by_grader = options(expected=[{"tool": "search", "args": args}], args_match=args_match)
    assert [(await graded(one, transcript)).passed for one in (by_item, by_grader)] == [fits, fits]


@pytest.mark.parametrize(("field", "fits"), [("to.city", True), ("to.zip", False)])
async def test_fields_are_compared_one_inside_another(field: str, fits: bool, graded: Graded) -> None:
    expected = [{"tool": "order", "args": {"to": {"city": "Rome", "zip": "2"}}}]
    transcript = called(("order", {"to": {"city": "Rome", "zip": "1"}}))
    assert (await graded(options(expected=expected, args_match=[field]), transcript)).passed is fits


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_that_is_too_slow_does_not_fit_in_any_mode(mode: str, graded: Graded) -> None:
    wanted = options(mode=mode, expected=[{"tool": "search", "max_duration_ms": 50}])
    assert (await graded(wanted, timed(("search", 50)))).passed
    assert (await graded(wanted, timed(("search", 51)))).score == 0
    assert "max_duration_ms" in (await graded(wanted, timed(("search", None)))).error


async def test_a_certain_fail_goes_before_a_duration_that_is_not_known(graded: Graded) -> None:
    wanted = options(expected=[{"tool": "search", "max_duration_ms": 50}, {"tool": "read"}])
    found = await graded(wanted, timed(("search", None)))
    assert (found.score, found.passed, found.error) == (0, False, None)
    assert (await graded({**wanted, "negate": True}, timed(("search", None)))).error


async def test_a_fast_call_serves_the_expectation_with_the_limit(graded: Graded) -> None:
    wanted = options(expected=[{"tool": "search"}, {"tool": "search", "max_duration_ms": 50}])
    assert (await graded(wanted, timed(("search", 10), ("search", 900)))).score == 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_transcript_that_does_not_hold_every_call_is_an_error(mode: str, graded: Graded) -> None:
    wanted = options(mode=mode, expected=tools("a"))
    assert "PASSGATE_TRANSCRIPT" in (await graded(wanted, called("a", complete=False))).error


@pytest.mark.parametrize("mode", ["exact", "subset"])
async def test_one_call_too_many_fails_whatever_else_was_called(mode: str, graded: Graded) -> None:
    wanted = options(mode=mode, expected=tools("a"))
    found = await graded(wanted, called("a", "b", complete=False))
    assert (found.score, found.error) == (0, None)
    assert (await graded({**wanted, "negate": True}, called("a", "b", complete=False))).error


async def test_a_refused_call_was_not_made_but_was_tried(graded: Graded) -> None:
    refused = called(ToolCall(tool="rm", refused=True))
    assert not (await graded(options(expected=tools("rm")), refused)).passed
    assert not (await graded(options(mode="subset", expected=tools("read")), refused)).passed


@pytest.mark.parametrize(
    "fields",
    [{}, {"mode": "exact"}, {"mode": "in_order"}, {"mode": "exact", "expected": tools("a"), "minimums": {"a": 1}}],
)
async def test_what_checks_nothing_or_cannot_be_meant_is_an_error(fields: dict[str, Any], graded: Graded) -> None:
    assert (await graded(options(**fields))).error


@pytest.mark.parametrize(
    ("made", "fields", "hidden"),
    [
        (("send", {"key": KEY}), {"mode": "subset", "expected": tools("read")}, KEY),
        ("send", {"expected": [{"tool": "send", "args": {"key": KEY}}]}, KEY),
        ("send", {"expected": [{"tool": "send", "args": {"pad": "x" * 470, "key": KEY}}]}, "sk-ant"),
    ],
    ids=["called with", "expected", "where a text is cut"],
)
async def test_no_key_is_given_away(made: Any, fields: dict[str, Any], hidden: str, graded: Graded) -> None:
    assert hidden not in (await graded(options(**fields), called(made))).model_dump_json()


@pytest.mark.parametrize(
    ("fits", "paired", "in_order"),
    [
        *(([], 0, 0), ([[1], [0]], 2, 1), ([[0, 1], [0]], 2, 1), ([[0, 1], [0, 2], [0]], 3, 2)),
        *(([[0], [0, 1], [1, 2], [2]], 3, 3), ([[5], [], [3]], 2, 1), ([[3], [0], [1], [2]], 4, 3)),
        *(([[0, 4], [1], [], [2]], 3, 3), ([[2], [0, 3], [1, 4]], 3, 3), ([list(range(300))] * 200, 200, 200)),
    ],
)
def test_as_many_as_possible_are_paired_and_found_in_order(fits: list[list[int]], paired: int, in_order: int) -> None:
    pairs = pair_most(fits)
    assert len(pairs) == len(set(pairs.values())) == paired
    pairs = pair_in_order(fits)
    assert len(pairs) == in_order
    assert list(pairs.values()) == sorted(set(pairs.values()))
