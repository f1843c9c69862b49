"""Good transcripts made of what graders ask for, who must notice what is done to them, and refusals by name."""

from typing import Any

import pytest

from passgate.tasks.graders.grader_checks.transcripts import (
    MOST_NAMES,
    Mutant,
    derived_transcript,
    mutants_of,
    parts_of,
    refusals_of,
    saying,
)
from passgate.tasks.model.task import Tool
from passgate.tasks.model.transcript import Message, Transcript
from tests.builders import a_task, calls
from tests.unit.graders.options import arguments, metrics, output, sequence, steps, used

STATE = {"type": "state_check", "expect": [{"file": "a.txt"}]}
RUBRIC = {"type": "llm_rubric", "rubric": "?"}
FIELD = {"type": "field_accuracy", "fields": [{"path": "a"}]}


def text(kind: str, value: Any, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "value": value, **fields}


def required(*tools: Any) -> dict[str, Any]:
    return {"type": "tool_calls", "required": tools}


def forbidden(*tools: Any) -> dict[str, Any]:
    return {"type": "tool_calls", "forbidden": tools}


def trajectory(**fields: Any) -> dict[str, Any]:
    return {"type": "tool_trajectory", **fields}


@pytest.mark.parametrize(
    ("graders", "answer"),
    [
        ([text("contains", "yes")], "yes"),
        ([text("contains_any", ["a", "b"])], "a"),
        ([text("icontains_all", ["a", "b"])], "a b"),
        ([text("equals", {"a": 1})], '{"a": 1}'),
        ([text("regex", "^total 4\\.2$")], "total 4.2"),
        ([{"type": "is_json"}], "{}"),
        ([output(contains=["a"], matches="b")], "a b"),
        ([{"type": "composite", "assertions": [text("contains", "yes")]}], "yes"),
        (
            [
                text("ends_with", "c"),
                text("contains", "b"),
                text("starts_with", "a"),
                {"type": "latency", "threshold": 1},
            ],
            "a b c",
        ),
        ([text("contains", "no", negate=True)], None),
        ([text("regex", "a+")], None),
        ([text("is_json", {})], None),
        ([RUBRIC], None),
        ([metrics(max_steps=3)], None),
        ([STATE], None),
        ([required("a*")], None),
        ([required({"tool": "a", "params": {"x": "<=3"}})], None),
        ([used("a?")], None),
        ([arguments("a*", {})], None),
    ],
)
def test_what_a_good_transcript_says(graders: list[dict[str, Any]], answer: str | None) -> None:
    derived = derived_transcript(a_task(graders=graders))
    assert (derived and derived.output) == answer


@pytest.mark.parametrize(
    ("grader", "called"),
    [
        (required("a", {"tool": "b", "params": {"x": 1}, "min": 2}), [("a", {}), ("b", {"x": 1}), ("b", {"x": 1})]),
        (trajectory(expected=[{"tool": "a"}], minimums={"a": 2, "b": 1}), [("a", {}), ("a", {}), ("b", {})]),
        (used("a", "b", min=2), [("a", {}), ("a", {}), ("b", {}), ("b", {})]),
        (sequence("b", "a"), [("b", {}), ("a", {})]),
        (arguments("a", {"x": 1}, defaults={"y": 2}), [("a", {"x": 1, "y": 2})]),
    ],
)
def test_what_a_good_transcript_calls(grader: dict[str, Any], called: list[tuple[str, dict[str, Any]]]) -> None:
    derived = derived_transcript(a_task(graders=[grader]))
    assert derived is not None
    assert [(call.tool, call.arguments) for call in derived.tool_calls] == called


GOOD = saying("Who?", "It was the butler, in the library, with a candlestick.")
BUTLER = text("contains", "butler")


def mutants(good: Transcript, grader: dict[str, Any], kind: str) -> list[Mutant]:
    return [mutant for mutant in mutants_of(a_task(graders=[grader]), good) if mutant.kind == kind]


def noticed(good: Transcript, grader: dict[str, Any], kind: str) -> list[bool]:
    """Of each mutant of a kind, whether a grader has to notice it."""
    parts = tuple(parts_of(a_task(graders=[grader]).graders[0]))
    return [any(mutant.hits(part) for part in parts) for mutant in mutants(good, grader, kind)]


def test_an_empty_answer_keeps_the_deeds() -> None:
    messages = (*calls("search").messages, Message(role="assistant", content="Found."))
    (mutant,) = mutants(Transcript(messages=messages, output="Found."), BUTLER, "empty answer")
    assert mutant.transcript.output == ""
    assert [message.content for message in mutant.transcript.steps] == ["", ""]
    assert [call.tool for call in mutant.transcript.tool_calls] == ["search"]


@pytest.mark.parametrize(
    ("grader", "must"),
    [
        (BUTLER, True),
        ({**BUTLER, "negate": True}, False),
        (text("equals", "x"), True),
        (text("equals", " "), False),
        (text("regex", "b.t"), True),
        (text("regex", "^(?!.*maid)"), False),
        ({"type": "is_json"}, True),
        (output(not_contains=["maid"]), False),
        (output(matches="^[^!]*$"), True),
        (output(matches="(?<!not )guilty"), False),
        (output(json_schema={}), True),
        (RUBRIC, True),
        ({"type": "composite", "assertions": [STATE, BUTLER]}, True),
        (STATE, False),
        ({"type": "code_grader", "command": ["x"]}, False),
        (FIELD, True),
        (required("x"), False),
    ],
)
def test_who_must_notice_an_empty_answer(grader: dict[str, Any], must: bool) -> None:
    assert noticed(GOOD, grader, "empty answer") == [must]


def test_a_judge_may_take_deeds_for_an_answer() -> None:
    acted = GOOD.model_copy(update={"messages": (*calls("search").messages, *GOOD.messages)})
    assert noticed(acted, RUBRIC, "empty answer") == [False]


@pytest.mark.parametrize(
    ("answer", "grader", "kept"),
    [
        (GOOD.output, BUTLER, "It was the butle"),
        (GOOD.output, text("icontains", "BUTLER"), "It was the butle"),
        (GOOD.output, text("contains", "candlestick"), GOOD.output[:27]),
        (GOOD.output, text("contains_any", ["library", "butler"]), "It was the butle"),
        (GOOD.output, text("contains_all", ["library", "butler"]), "It was the butle"),
        (GOOD.output, text("ends_with", "candlestick."), GOOD.output[:27]),
        (GOOD.output, text("equals", GOOD.output), GOOD.output[:27]),
        (GOOD.output, text("regex", "b.tler"), "It was the "),
        (GOOD.output, output(contains=["library"], matches="was"), "It "),
        (GOOD.output, output(matches="the .* library"), "It was "),
        ('{"a": [1, 2, 3]}', {"type": "is_json"}, '{"a": [1'),
        ('The result: {"a": 1}', FIELD, "The result"),
    ],
)
def test_an_answer_is_cut_before_what_is_asked_for(answer: str, grader: dict[str, Any], kept: str) -> None:
    (mutant,) = mutants(saying("Who?", answer), grader, "truncated output")
    assert mutant.transcript.output == mutant.transcript.messages[-1].content == kept
    assert noticed(saying("Who?", answer), grader, "truncated output") == [True]


@pytest.mark.parametrize(
    ("answer", "grader"),
    [
        (GOOD.output, text("starts_with", "I")),
        (GOOD.output, text("regex", ".+")),
        (GOOD.output, text("regex", "^It")),
        (GOOD.output, text("contains", "maid")),
        (GOOD.output, RUBRIC),
        (GOOD.output, output(not_contains=["maid"])),
        (GOOD.output, STATE),
        ("12345678", {"type": "is_json"}),
    ],
)
def test_an_answer_is_not_cut_where_nobody_can_say_what_is_missing(answer: str, grader: dict[str, Any]) -> None:
    assert mutants(saying("?", answer), grader, "truncated output") == []


@pytest.mark.parametrize(
    ("grader", "all_gone", "all_other"),
    [
        (required("search"), True, True),
        (required("*"), True, False),
        (forbidden("delete"), False, False),
        (trajectory(expected=[{"tool": "search"}]), True, True),
        (trajectory(mode="subset", expected=[{"tool": "search"}]), False, False),
        (trajectory(minimums={"search": 1}), True, True),
        (used("sea*"), True, True),
        (used("search", min=0, max=2), False, False),
        (used("search", negate=True), False, False),
        (sequence("search", "fetch"), True, True),
        (arguments("search", {}), True, True),
        ({"type": "skill_trigger", "skill": "pdf"}, True, True),
        ({"type": "skill_trigger", "skill": "pdf", "should_trigger": False}, False, False),
        (steps(kind="tool", min=1), True, False),
        (steps(kind="tool", min=1, pattern="search"), True, True),
        (steps(min=1), False, False),
        (metrics(min_tool_calls=1), True, False),
        (metrics(max_tool_calls=1), False, False),
        (STATE, False, False),
    ],
)
def test_who_must_notice_that_all_calls_are_gone_or_others(grader: Any, all_gone: bool, all_other: bool) -> None:
    good = calls("search", "fetch")
    assert noticed(good, grader, "dropped step")[0] is all_gone
    assert noticed(good, grader, "swapped tool")[0] is all_other


@pytest.mark.parametrize(
    ("grader", "dropped"),
    [
        (trajectory(mode="exact", expected=[{"tool": "search"}]), [True, True, True]),
        (trajectory(mode="in_order", expected=[{"tool": "search"}]), [False, False, False]),
        (sequence("search", mode="exact"), [True, True, True]),
        (required("fetch"), [False, True, False]),
        (required("search"), [False, False, False]),
        (required({"tool": "search", "min": 2}), [True, False, True]),
        (used("FETCH"), [False, True, False]),
        (used("search"), [False, False, False]),
    ],
)
def test_who_must_notice_one_call(grader: dict[str, Any], dropped: list[bool]) -> None:
    good = calls("search", "fetch", "search")
    assert noticed(good, grader, "dropped step")[1:] == dropped
    assert noticed(good, grader, "swapped tool")[1:] == dropped


def test_a_dropped_call_takes_its_message_along_and_leaves_the_others() -> None:
    _, first, second = mutants(calls("search", "fetch"), STATE, "dropped step")
    assert [call.tool for call in first.transcript.tool_calls] == ["fetch"]
    assert [call.tool for call in second.transcript.tool_calls] == ["search"]
    assert len(first.transcript.messages) == 1
    assert first.what == "the call 1, of search, is gone"


def test_a_swapped_call_is_of_a_tool_that_no_grader_means() -> None:
    _, first, _ = mutants(calls("search", "fetch"), forbidden("another_tool"), "swapped tool")
    assert [call.tool for call in first.transcript.tool_calls] == ["another_tool_", "fetch"]


@pytest.mark.parametrize(("good", "number"), [(calls(*["search"] * 30), 13), (calls("search"), 1), (GOOD, 0)])
def test_only_some_calls_are_dropped_one_by_one(good: Transcript, number: int) -> None:
    assert len(mutants(good, STATE, "dropped step")) == number


@pytest.mark.parametrize(
    ("grader", "must"),
    [
        (metrics(max_tool_calls=50), [True]),
        (metrics(max_tool_calls=5000, max_loop_rate=1), []),
        (metrics(max_p95_step_latency_ms=900), [True]),
        ({"type": "execution_metrics", "max_cost_usd": 1}, [True]),
        ({"type": "latency", "threshold": 1}, [True]),
        ({"type": "cost", "budget": 1}, [True]),
        ({"type": "token_usage", "max_total": 1}, [True]),
        (steps(max=3), [True]),
    ],
)
def test_who_must_notice_a_trial_without_end(grader: dict[str, Any], must: list[bool]) -> None:
    assert noticed(calls("search"), grader, "endless trial") == must


def test_a_trial_without_end_exceeds_the_limit_on_calls() -> None:
    (mutant,) = mutants(GOOD, metrics(max_tool_calls=120), "endless trial")
    assert len(mutant.transcript.tool_calls) > 120
    assert mutant.transcript.output == GOOD.output


def test_nothing_is_made_of_a_transcript_without_words_and_calls() -> None:
    assert list(mutants_of(a_task(), Transcript())) == []


def test_graders_of_the_state_keep_their_grades() -> None:
    task = a_task(graders=[STATE])
    found = list(mutants_of(task, GOOD.model_copy(update={"messages": (*calls("a", "b").messages, *GOOD.messages)})))
    assert found
    assert not any(mutant.looks(task.graders[0]) for mutant in found)


MANY = tuple(f"tool_{number:02}" for number in range(50))
DELETES = Tool(name="delete_order", description="Deletes.", command="true")


@pytest.mark.parametrize(
    ("grader", "bad", "tools", "named"),
    [
        (forbidden("drop_table"), (), (), ("drop_table",)),
        (forbidden({"tool": "send", "params": {"to": "*@evil"}}), (), (), ("send",)),
        (forbidden({"tool": "*", "params": {"command": "*rm -r*archive*"}}), (), (), ("rm -r archive",)),
        (forbidden({"tool": "*", "params": {"path": "/etc/*"}}), (), (), None),
        ({"type": "policy_check", "deny_tools": ["issue_*"]}, (), (), ("issue_",)),
        (used("shell", negate=True), (), (), ("shell",)),
        (used("shell"), (), (), None),
        ({"type": "composite", "assertions": [used("shell", negate=True)]}, (), (), ("shell",)),
        (forbidden("delete_*"), ("delete_customer",), (DELETES,), ("delete_customer", "delete_order")),
        (output(contains=["x"]), ("wipe", "look"), (), ("wipe",)),
        (forbidden(*MANY), (), (), MANY[:MOST_NAMES]),
    ],
)
def test_refusals_name_what_is_forbidden(grader: Any, bad: Any, tools: Any, named: Any) -> None:
    refusals = refusals_of(a_task(graders=[grader], tools=tools), bad, ("look",))
    assert (refusals and refusals.names) == named


def test_both_refusals_are_the_same_but_for_the_names() -> None:
    refusals = refusals_of(a_task(graders=[forbidden("delete_*")]), (), ())
    assert refusals is not None
    assert "`delete_`" in refusals.naming.output
    assert "delete" not in refusals.plain.output
    assert refusals.naming.tool_calls == refusals.plain.tool_calls == ()
    assert refusals.naming.complete
