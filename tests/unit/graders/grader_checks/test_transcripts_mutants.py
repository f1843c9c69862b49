"""What is done to a good transcript, and which graders have to notice."""

from typing import Any

import pytest

from passgate.tasks.graders.grader_checks.transcripts import Mutant, mutants_of, parts_of, saying
from passgate.tasks.model.transcript import Message, Transcript
from tests.builders import a_task, calls

GOOD = saying("Who?", "It was the butler, in the library, with a candlestick.")
STATE = {"type": "state_check", "expect": [{"file": "a.txt"}]}
BUTLER = {"type": "contains", "value": "butler"}


def mutants(good: Transcript, *graders: dict[str, Any], kind: str) -> list[Mutant]:
    task = a_task(graders=list(graders))
    return [mutant for mutant in mutants_of(task, good) if mutant.kind == kind]


def noticed(good: Transcript, grader: dict[str, Any], kind: str) -> list[bool]:
    """Of each mutant of a kind, whether a grader has to notice it."""
    task = a_task(graders=[grader])
    return [any(mutant.hits(part) for part in parts_of(task.graders[0])) for mutant in mutants(good, grader, kind=kind)]


def test_an_empty_answer_keeps_the_deeds() -> None:
    good = calls("search").model_copy(update={"output": "Found."})
    said = good.model_copy(update={"messages": (*good.messages, Message(role="assistant", content="Found."))})
    (mutant,) = mutants(said, BUTLER, kind="empty answer")
    assert mutant.transcript.output == ""
    assert [message.content for message in mutant.transcript.steps] == ["", ""]
    assert [call.tool for call in mutant.transcript.tool_calls] == ["search"]


@pytest.mark.parametrize(
    ("grader", "must"),
    [
        (BUTLER, True),
        ({**BUTLER, "negate": True}, False),
        ({"type": "equals", "value": "x"}, True),
        ({"type": "equals", "value": " "}, False),
        ({"type": "regex", "value": "b.t"}, True),
        ({"type": "regex", "value": "^(?!.*maid)"}, False),
        ({"type": "is_json"}, True),
        ({"type": "output_check", "not_contains": ["maid"]}, False),
        ({"type": "output_check", "matches": "^[^!]*$"}, True),
        ({"type": "output_check", "matches": "(?<!not )guilty"}, False),
        ({"type": "output_check", "json_schema": {}}, True),
        ({"type": "llm_rubric", "rubric": "?"}, True),
        ({"type": "composite", "assertions": [STATE, BUTLER]}, True),
        (STATE, False),
        ({"type": "code_grader", "command": ["x"]}, False),
        ({"type": "field_accuracy", "fields": [{"path": "a"}]}, True),
        ({"type": "tool_calls", "required": ["x"]}, False),
    ],
)
def test_who_must_notice_an_empty_answer(grader: dict[str, Any], must: bool) -> None:
    assert noticed(GOOD, grader, "empty answer") == [must]


def test_a_judge_may_take_deeds_for_an_answer() -> None:
    acted = GOOD.model_copy(update={"messages": (*calls("search").messages, *GOOD.messages)})
    assert noticed(acted, {"type": "llm_rubric", "rubric": "?"}, "empty answer") == [False]


@pytest.mark.parametrize(
    ("grader", "kept"),
    [
        (BUTLER, "It was the butle"),
        ({"type": "icontains", "value": "BUTLER"}, "It was the butle"),
        ({"type": "contains", "value": "candlestick"}, GOOD.output[:27]),
        ({"type": "contains_any", "value": ["library", "butler"]}, "It was the butle"),
        ({"type": "contains_all", "value": ["library", "butler"]}, "It was the butle"),
        ({"type": "ends_with", "value": "candlestick."}, GOOD.output[:27]),
        ({"type": "equals", "value": GOOD.output}, GOOD.output[:27]),
        ({"type": "regex", "value": "b.tler"}, "It was the "),
        ({"type": "output_check", "contains": ["library"], "matches": "was"}, "It "),
        ({"type": "output_check", "matches": "the .* library"}, "It was "),
    ],
)
def test_an_answer_is_cut_before_what_is_asked_for(grader: dict[str, Any], kept: str) -> None:
    (mutant,) = mutants(GOOD, grader, kind="truncated output")
    assert mutant.transcript.output == mutant.transcript.messages[-1].content == kept
    assert noticed(GOOD, grader, "truncated output") == [True]


@pytest.mark.parametrize(
    "grader",
    [
        {"type": "starts_with", "value": "I"},
        {"type": "regex", "value": ".+"},
        {"type": "regex", "value": "^It"},
        {"type": "contains", "value": "maid"},
        {"type": "llm_rubric", "rubric": "?"},
        {"type": "output_check", "not_contains": ["maid"]},
        STATE,
    ],
)
def test_an_answer_is_not_cut_where_nobody_can_say_what_is_missing(grader: dict[str, Any]) -> None:
    assert mutants(GOOD, grader, kind="truncated output") == []


@pytest.mark.parametrize(
    ("answer", "grader", "kept"),
    [
        ('{"a": [1, 2, 3]}', {"type": "is_json"}, '{"a": [1'),
        ("12345678", {"type": "is_json"}, None),
        ('The result: {"a": 1}', {"type": "field_accuracy", "fields": [{"path": "a"}]}, "The result"),
    ],
)
def test_json_is_cut_in_two(answer: str, grader: dict[str, Any], kept: str | None) -> None:
    found = mutants(saying("?", answer), grader, kind="truncated output")
    assert [mutant.transcript.output for mutant in found] == ([] if kept is None else [kept])


@pytest.mark.parametrize(
    ("grader", "all_gone", "all_other"),
    [
        ({"type": "tool_calls", "required": ["search"]}, True, True),
        ({"type": "tool_calls", "required": ["*"]}, True, False),
        ({"type": "tool_calls", "forbidden": ["delete"]}, False, False),
        ({"type": "tool_trajectory", "expected": [{"tool": "search"}]}, True, True),
        ({"type": "tool_trajectory", "mode": "subset", "expected": [{"tool": "search"}]}, False, False),
        ({"type": "tool_trajectory", "minimums": {"search": 1}}, True, True),
        ({"type": "tool_used", "tools": ["sea*"]}, True, True),
        ({"type": "tool_used", "tools": ["search"], "min": 0, "max": 2}, False, False),
        ({"type": "tool_used", "tools": ["search"], "negate": True}, False, False),
        ({"type": "tool_sequence", "steps": ["search", "fetch"]}, True, True),
        ({"type": "tool_arguments", "tool": "search", "args": {}}, True, True),
        ({"type": "skill_trigger", "skill": "pdf"}, True, True),
        ({"type": "skill_trigger", "skill": "pdf", "should_trigger": False}, False, False),
        ({"type": "step_count", "kind": "tool", "min": 1}, True, False),
        ({"type": "step_count", "kind": "tool", "min": 1, "pattern": "search"}, True, True),
        ({"type": "step_count", "min": 1}, False, False),
        ({"type": "trajectory_metrics", "min_tool_calls": 1}, True, False),
        ({"type": "trajectory_metrics", "max_tool_calls": 1}, False, False),
        (STATE, False, False),
    ],
)
def test_who_must_notice_that_all_calls_are_gone_or_others(
    grader: dict[str, Any], all_gone: bool, all_other: bool
) -> None:
    good = calls("search", "fetch")
    assert noticed(good, grader, "dropped step")[0] is all_gone
    assert noticed(good, grader, "swapped tool")[0] is all_other


@pytest.mark.parametrize(
    ("grader", "dropped"),
    [
        ({"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "search"}]}, [True, True, True]),
        ({"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "search"}]}, [False, False, False]),
        ({"type": "tool_sequence", "mode": "exact", "steps": ["search"]}, [True, True, True]),
        ({"type": "tool_calls", "required": ["fetch"]}, [False, True, False]),
        ({"type": "tool_calls", "required": ["search"]}, [False, False, False]),
        ({"type": "tool_calls", "required": [{"tool": "search", "min": 2}]}, [True, False, True]),
        ({"type": "tool_used", "tools": ["FETCH"]}, [False, True, False]),
        ({"type": "tool_used", "tools": ["search"]}, [False, False, False]),
    ],
)
def test_who_must_notice_one_call(grader: dict[str, Any], dropped: list[bool]) -> None:
    good = calls("search", "fetch", "search")
    assert noticed(good, grader, "dropped step")[1:] == dropped
    assert noticed(good, grader, "swapped tool")[1:] == dropped


def test_a_dropped_call_takes_its_message_along_and_leaves_the_others() -> None:
    good = calls("search", "fetch")
    _, first, second = mutants(good, STATE, kind="dropped step")
    assert [call.tool for call in first.transcript.tool_calls] == ["fetch"]
    assert [call.tool for call in second.transcript.tool_calls] == ["search"]
    assert len(first.transcript.messages) == 1
    assert first.what == "the call 1, of search, is gone"


def test_a_swapped_call_is_of_a_tool_that_no_grader_means() -> None:
    good = calls("search", "fetch")
    _, first, _ = mutants(good, {"type": "tool_calls", "forbidden": ["another_tool"]}, kind="swapped tool")
    assert [call.tool for call in first.transcript.tool_calls] == ["another_tool_", "fetch"]


def test_only_some_calls_are_dropped_one_by_one() -> None:
    assert len(mutants(calls(*["search"] * 30), STATE, kind="dropped step")) == 13
    assert len(mutants(calls("search"), STATE, kind="dropped step")) == 1
    assert mutants(GOOD, STATE, kind="dropped step") == []


@pytest.mark.parametrize(
    ("grader", "must"),
    [
        ({"type": "trajectory_metrics", "max_tool_calls": 50}, True),
        ({"type": "trajectory_metrics", "max_tool_calls": 5000, "max_loop_rate": 1}, False),
        ({"type": "trajectory_metrics", "max_p95_step_latency_ms": 900}, True),
        ({"type": "execution_metrics", "max_cost_usd": 1}, True),
        ({"type": "latency", "threshold": 1}, True),
        ({"type": "cost", "budget": 1}, True),
        ({"type": "token_usage", "max_total": 1}, True),
        ({"type": "step_count", "max": 3}, True),
    ],
)
def test_who_must_notice_a_trial_without_end(grader: dict[str, Any], must: bool) -> None:
    assert noticed(calls("search"), grader, "endless trial") == ([True] if must else [])


def test_a_trial_without_end_exceeds_the_limit_on_calls() -> None:
    limits = {"type": "trajectory_metrics", "max_tool_calls": 120}
    (mutant,) = mutants(GOOD, limits, kind="endless trial")
    assert len(mutant.transcript.tool_calls) > 120
    assert mutant.transcript.output == GOOD.output


def test_nothing_is_made_of_a_transcript_without_words_and_calls() -> None:
    assert list(mutants_of(a_task(), Transcript())) == []


def test_graders_of_the_state_keep_their_grades() -> None:
    task = a_task(graders=[STATE])
    found = list(mutants_of(task, GOOD.model_copy(update={"messages": (*calls("a", "b").messages, *GOOD.messages)})))
    assert found
    assert not any(mutant.looks(task.graders[0]) for mutant in found)
