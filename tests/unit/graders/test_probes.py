"""Good transcripts made of what graders ask for, who must notice what is done to them, and refusals by name."""

from typing import Any

import pytest

from passgate.tasks.graders.probes import (
    MOST_NAMES,
    answer,
    checks_to_break,
    derived_transcript,
    is_regraded,
    leaf_graders,
    mutants,
    refusals,
    wants_an_answer,
)
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.task import Tool
from passgate.tasks.model.transcript import Transcript
from tests.builders import a_task, calls
from tests.unit.graders.options import arguments, metrics, output, sequence, used

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
        *(([text("contains", "yes")], "yes"), ([text("contains_any", ["a", "b"])], "a")),
        *(([text("icontains_all", ["a", "b"])], "a b"), ([text("equals", {"a": 1})], '{"a": 1}')),
        *(([text("regex", "^total 4\\.2$")], "total 4.2"), ([{"type": "is_json"}], "{}")),
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
        *(([text("regex", "a+")], None), ([text("is_json", {})], None), ([RUBRIC], None)),
        *(([metrics(max_steps=3)], None), ([STATE], None)),
        ([required({"tool": "a", "params": {"x": "<=3"}})], None),
        ([used("a?")], None),
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


GOOD = answer("Who?", "It was the butler.")
ACTED = GOOD.model_copy(update={"messages": (*calls("search", "fetch").messages, *GOOD.messages)})
BUTLER = text("contains", "butler")
PROGRAM = {"type": "code_grader", "command": ["x"]}


def of(grader: dict[str, Any]) -> Grader:
    return a_task(graders=[grader]).graders[0]


def made_bad(good: Transcript) -> dict[str, Transcript]:
    return {bad.what: bad.transcript for bad in mutants(good)}


@pytest.mark.parametrize(
    ("what", "said", "called"),
    [
        ("the answer is empty", "", ["search", "fetch"]),
        ("no tool is called", GOOD.output, []),
        ("every call is one of another_tool", GOOD.output, ["another_tool", "another_tool"]),
        ("the calls are in reverse order", GOOD.output, ["fetch", "search"]),
    ],
)
def test_a_bad_transcript_has_one_defect(what: str, said: str, called: list[str]) -> None:
    bad = made_bad(ACTED)[what]
    assert (bad.output, bad.messages[-1].content) == (said, said)
    assert [call.tool for call in bad.tool_calls] == called


def test_what_has_neither_words_nor_calls_can_only_go_on_without_end() -> None:
    (endless,) = made_bad(Transcript()).values()
    assert len(endless.tool_calls) > 4000
    assert [*made_bad(GOOD)][2:] == ["the same call fails 4010 times, at immense cost"]


@pytest.mark.parametrize(
    ("grader", "regraded"),
    [
        *((BUTLER, [True, True, True]), (STATE, [False, False, False]), (PROGRAM, [True, True, False])),
        (RUBRIC, [True, False, False]),
        ({"type": "composite", "assertions": [STATE, BUTLER]}, [True, True, True]),
        ({"type": "composite", "assertions": [RUBRIC, BUTLER]}, [True, False, False]),
    ],
)
def test_graders_are_asked_again_where_they_look_and_it_costs_no_judge(grader: Any, regraded: list[bool]) -> None:
    assert [is_regraded(of(grader), bad) for bad in mutants(GOOD)] == regraded


@pytest.mark.parametrize(
    ("grader", "wants"),
    [
        *((BUTLER, True), ({**BUTLER, "negate": True}, False), (text("equals", " "), False)),
        *((text("regex", "b.t"), True), (text("regex", "^(?!.*maid)"), False), ({"type": "is_json"}, True)),
        *((output(not_contains=["maid"]), False), (output(matches="^[^!]*$"), True)),
        *((output(matches="(?<!not )guilty"), False), (output(json_schema={}), True)),
        ({"type": "composite", "assertions": [STATE, BUTLER]}, True),
        *((STATE, False), (FIELD, True), (required("x"), False)),
    ],
)
def test_who_asks_something_of_the_answer(grader: dict[str, Any], wants: bool) -> None:
    assert any(map(wants_an_answer, leaf_graders(of(grader)))) is wants


@pytest.mark.parametrize(
    ("expected", "forbids"),
    [
        ({"sqlite": "a.db", "query": "SELECT 1", "max_rows": 3, "min_rows": 0}, True),
        ({"sqlite": "a.db", "query": "SELECT 1", "max_rows": 3, "min_rows": 1}, False),
        ({"sqlite": "a.db", "query": "SELECT 1", "value": None, "max_rows": 3}, False),
        ({"file": "a.txt", "contains": ["a"], "not_contains": ["b"]}, False),
        *(({"file": "a.txt", "not_contains": ["b"]}, True), ({"file": "a.txt", "exists": False}, True)),
        *(({"json_file": "a.json", "equals": 1}, False), ({"json_file": "a.json", "absent": True}, True)),
        ({"command": "grep -q x a", "exit_code": 1}, False),
    ],
)
def test_of_a_state_only_prohibitions_must_be_broken(expected: dict[str, Any], forbids: bool) -> None:
    grader = of({"type": "state_check", "expect": [{"file": "b.txt"}, expected]})
    assert list(checks_to_break(grader, 2)) == [1] * forbids


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
        *((used("shell", negate=True), (), (), ("shell",)), (used("shell"), (), (), None)),
        ({"type": "composite", "assertions": [used("shell", negate=True)]}, (), (), ("shell",)),
        (forbidden("delete_*"), ("delete_customer",), (DELETES,), ("delete_customer", "delete_order")),
        (output(contains=["x"]), ("wipe", "look"), (), ("wipe",)),
        (forbidden(*MANY), (), (), MANY[:MOST_NAMES]),
    ],
)
def test_refusals_name_what_is_forbidden(grader: Any, bad: Any, tools: Any, named: Any) -> None:
    found = refusals(a_task(graders=[grader], tools=tools), bad, ("look",))
    assert (found and found.names) == named


def test_both_refusals_are_the_same_but_for_the_names() -> None:
    found = refusals(a_task(graders=[forbidden("delete_*")]), (), ())
    assert found is not None
    assert "`delete_`" in found.naming.output
    assert "delete" not in found.plain.output
    assert found.naming.tool_calls == found.plain.tool_calls == ()
    assert found.naming.complete
