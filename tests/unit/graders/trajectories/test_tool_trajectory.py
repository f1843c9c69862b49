"""Expected tool calls: what each mode lets pass, and what it does not."""

from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.trajectories.tool_trajectory import same_call
from passgate.tasks.model.assertions import ExpectedCall, ToolTrajectory
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.transcript import Message, ToolCall, Transcript
from tests.unit.graders.trials import MakeEvidence, called

SEARCHES = (("search", {"q": "a", "limit": 5}), ("read", {"id": 1}), ("search", {"q": "b", "limit": 5}), "answer")


def options(**fields: Any) -> ToolTrajectory:
    return ToolTrajectory.model_validate({"type": "tool_trajectory", **fields})


def tools(*names: str) -> list[dict[str, Any]]:
    return [{"tool": name} for name in names]


def timed(*calls: tuple[str, float | None]) -> Transcript:
    made = tuple(ToolCall(tool=tool, duration_ms=duration) for tool, duration in calls)
    return Transcript(messages=(Message(role="assistant", tool_calls=made),))


@pytest.fixture
def graded(make_evidence: MakeEvidence) -> Callable[..., Any]:
    async def ask(transcript: Transcript, **fields: Any) -> Grade:
        return await grade(options(**fields), make_evidence(transcript=transcript))

    return ask


Graded = Callable[..., Any]


@pytest.mark.parametrize(
    ("fields", "score"),
    [
        ({"minimums": {"search": 2, "read": 1}}, 1),
        ({"minimums": {"search": 3, "read": 1}}, 1 / 2),
        ({"expected": tools("answer", "search")}, 1),
        ({"expected": tools("search", "search", "search")}, 2 / 3),
        ({"expected": tools("search", "missing"), "minimums": {"read": 1}}, 2 / 3),
    ],
)
async def test_any_order_is_the_share_of_what_is_met(fields: dict[str, Any], score: float, graded: Graded) -> None:
    found = await graded(called(*SEARCHES), **fields)
    assert found.score == pytest.approx(score)
    assert found.passed is (score >= 0.8)


async def test_any_order_is_the_mode_when_none_is_given(graded: Graded) -> None:
    assert (await graded(called("b", "a"), expected=tools("a", "b"))).passed


async def test_a_call_is_counted_for_the_expectation_that_needs_it(graded: Graded) -> None:
    expected = [{"tool": "search"}, {"tool": "search", "args": {"q": "a"}}]
    found = await graded(called(("search", {"q": "a"}), ("search", {"q": "b"})), expected=expected)
    assert found.score == 1


@pytest.mark.parametrize(
    ("names", "score"),
    [
        (("search", "answer"), 1),
        (("read", "search", "answer"), 1),
        (("answer", "search"), 0),
        (("search", "read", "search", "search", "answer"), 4 / 5),
        (("search", "missing"), 1 / 2),
        (("missing",), 0),
        (("missing", "answer", "read"), 0),
    ],
)
async def test_in_order_is_the_share_found_and_nothing_in_another_order(
    names: tuple[str, ...], score: float, graded: Graded
) -> None:
    found = await graded(called(*SEARCHES), mode="in_order", expected=tools(*names))
    assert found.score == pytest.approx(score)


async def test_other_arguments_do_not_use_a_call_up(graded: Graded) -> None:
    expected = [{"tool": "search", "args": {"q": "b"}}, {"tool": "answer"}]
    found = await graded(called(*SEARCHES), mode="in_order", args_match="superset", expected=expected)
    assert found.score == 1


@pytest.mark.parametrize(
    ("names", "passed"),
    [
        (("search", "read", "search", "answer"), True),
        (("search", "read", "search"), False),
        (("search", "read", "search", "answer", "done"), False),
        (("read", "search", "search", "answer"), False),
    ],
)
async def test_exact_is_these_calls_and_no_others(names: tuple[str, ...], passed: bool, graded: Graded) -> None:
    found = await graded(called(*SEARCHES), mode="exact", expected=tools(*names))
    assert (found.passed, found.score) == (passed, float(passed))


async def test_exact_says_what_stands_at_the_wrong_place(graded: Graded) -> None:
    found = await graded(called("a", "c"), mode="exact", expected=tools("a", "b"))
    assert [check.message for check in found.checks if not check.passed] == ["call 2 is c({}), expected b"]


@pytest.mark.parametrize(
    ("names", "score"), [(("answer", "search"), 1), (("read", "read"), 1 / 2), (("read", "read", "done"), 1 / 3)]
)
async def test_superset_gives_each_expectation_a_call_of_its_own(
    names: tuple[str, ...], score: float, graded: Graded
) -> None:
    found = await graded(called(*SEARCHES), mode="superset", expected=tools(*names))
    assert found.score == pytest.approx(score)


@pytest.mark.parametrize(
    ("names", "passed"),
    [(("search", "read", "answer"), True), (("search", "read"), False), ((), False)],
)
async def test_subset_allows_nothing_else(names: tuple[str, ...], passed: bool, graded: Graded) -> None:
    found = await graded(called(*SEARCHES), mode="subset", expected=tools(*names))
    assert (found.passed, found.score) == (passed, float(passed))


async def test_one_call_in_ten_that_is_not_allowed_is_too_many(graded: Graded) -> None:
    found = await graded(called(*["read"] * 9, "delete"), mode="subset", expected=tools("read"))
    assert not found.passed
    assert found.checks[0].message == "delete({}) is not expected"


async def test_subset_without_calls_is_met(graded: Graded) -> None:
    assert (await graded(Transcript(), mode="subset", expected=tools("read"))).passed
    assert (await graded(Transcript(), mode="subset")).passed


@pytest.mark.parametrize(
    ("args", "args_match", "fits"),
    [
        ({"q": "a", "limit": 5}, "exact", True),
        ({"q": "a"}, "exact", False),
        ({"q": "a"}, "superset", True),
        ({"q": "z"}, "superset", False),
        ({"q": "a", "limit": 5, "page": 1}, "subset", True),
        ({"q": "a"}, "subset", False),
        ({"q": "z"}, "ignore", True),
        ({"q": "a", "limit": 99}, ["q"], True),
        ({"q": "a", "limit": 99}, ["q", "limit"], False),
        ({"q": "a"}, ["q", "page"], True),
        ({"q": "a"}, ["q", "limit"], True),
        ("any", "exact", True),
        (None, "exact", True),
        ({"q": "any"}, "superset", False),
        ({"q": "a", "limit": True}, "exact", False),
        ({"q": "a", "limit": 5.0}, "exact", True),
    ],
)
async def test_how_arguments_are_compared(args: Any, args_match: Any, fits: bool, graded: Graded) -> None:
    transcript = called(("search", {"q": "a", "limit": 5}))
    by_item = await graded(transcript, expected=[{"tool": "search", "args": args, "args_match": args_match}])
    by_grader = await graded(transcript, expected=[{"tool": "search", "args": args}], args_match=args_match)
    assert (by_item.passed, by_grader.passed) == (fits, fits)


async def test_fields_are_compared_one_inside_another(graded: Graded) -> None:
    call = ("order", {"to": {"city": "Rome", "zip": "1"}})
    expected = [{"tool": "order", "args": {"to": {"city": "Rome", "zip": "2"}}}]
    assert (await graded(called(call), expected=expected, args_match=["to.city"])).passed
    assert not (await graded(called(call), expected=expected, args_match=["to.zip"])).passed


@pytest.mark.parametrize("mode", ["any_order", "in_order", "exact", "superset", "subset"])
async def test_a_call_that_is_too_slow_does_not_fit_in_any_mode(mode: str, graded: Graded) -> None:
    expected = [{"tool": "search", "max_duration_ms": 50}]
    assert (await graded(timed(("search", 50)), mode=mode, expected=expected)).passed
    assert (await graded(timed(("search", 51)), mode=mode, expected=expected)).score == 0


@pytest.mark.parametrize("mode", ["any_order", "in_order", "exact", "superset", "subset"])
async def test_a_limited_call_of_unknown_duration_is_an_error(mode: str, graded: Graded) -> None:
    found = await graded(timed(("search", None)), mode=mode, expected=[{"tool": "search", "max_duration_ms": 50}])
    assert "max_duration_ms" in (found.error or "")


async def test_a_certain_fail_goes_before_a_duration_that_is_not_known(graded: Graded) -> None:
    expected = [{"tool": "search", "max_duration_ms": 50}, {"tool": "read"}]
    found = await graded(timed(("search", None)), expected=expected)
    assert (found.score, found.passed, found.error) == (0, False, None)


async def test_what_is_negated_is_an_error_where_a_duration_would_decide(graded: Graded) -> None:
    expected = [{"tool": "search", "max_duration_ms": 50}, {"tool": "read"}]
    found = await graded(timed(("search", None)), expected=expected, negate=True)
    assert found.error is not None


async def test_a_fast_call_serves_the_expectation_with_the_limit(graded: Graded) -> None:
    expected = [{"tool": "search"}, {"tool": "search", "max_duration_ms": 50}]
    assert (await graded(timed(("search", 10), ("search", 900)), expected=expected)).score == 1


async def test_a_transcript_that_does_not_hold_every_call_is_an_error(graded: Graded) -> None:
    for mode in ("any_order", "in_order", "exact", "superset", "subset"):
        found = await graded(called("a", complete=False), mode=mode, expected=tools("a"))
        assert "PASSGATE_TRANSCRIPT" in (found.error or "")


async def test_one_call_too_many_fails_whatever_else_was_called(graded: Graded) -> None:
    for mode in ("exact", "subset"):
        found = await graded(called("a", "b", complete=False), mode=mode, expected=tools("a"))
        assert (found.score, found.error) == (0, None)


async def test_what_is_negated_is_an_error_where_calls_are_not_known(graded: Graded) -> None:
    for mode in ("exact", "subset"):
        found = await graded(called("a", "b", complete=False), mode=mode, expected=tools("a"), negate=True)
        assert found.error is not None


async def test_a_refused_call_was_not_made_but_was_tried(graded: Graded) -> None:
    refused = Transcript(messages=(Message(role="assistant", tool_calls=(ToolCall(tool="rm", refused=True),)),))
    assert not (await graded(refused, expected=tools("rm"))).passed
    assert not (await graded(refused, mode="subset", expected=tools("read"))).passed


@pytest.mark.parametrize(
    "fields",
    [{}, {"mode": "exact"}, {"mode": "in_order"}, {"mode": "exact", "expected": tools("a"), "minimums": {"a": 1}}],
)
async def test_what_checks_nothing_or_cannot_be_meant_is_an_error(fields: dict[str, Any], graded: Graded) -> None:
    assert (await graded(Transcript(), **fields)).error is not None


async def test_no_key_is_given_away(graded: Graded) -> None:
    key = "sk-ant-" + "a1B2" * 24
    found = await graded(called(("send", {"key": key})), mode="subset", expected=tools("read"))
    assert key not in found.model_dump_json()
    asked = await graded(called("send"), expected=[{"tool": "send", "args": {"key": key}}])
    assert key not in asked.model_dump_json()


async def test_no_part_of_a_key_is_given_away_where_a_text_is_cut(graded: Graded) -> None:
    arguments = {"pad": "x" * 470, "key": "sk-ant-" + "a1B2" * 24}
    found = await graded(called("send"), expected=[{"tool": "send", "args": arguments}])
    assert "sk-ant" not in found.model_dump_json()


@pytest.mark.parametrize("args", [{"q": "a"}, {"q": "a", "limit": 5}])
def test_an_unknown_way_to_compare_arguments_is_no_known_one(args: dict[str, Any]) -> None:
    expected = ExpectedCall.model_construct(tool="search", args={"q": "a"}, args_match="prefix")
    with pytest.raises(AssertionError, match="unreachable"):
        same_call(expected, "exact", ToolCall(tool="search", arguments=args))
