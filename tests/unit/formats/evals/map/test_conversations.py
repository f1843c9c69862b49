"""Tests with turns."""

from pathlib import Path
from typing import Any

from passgate.tasks.model.graders import Turns
from tests.unit.formats.evals.eval_tasks import read_tests

ALICE = {"type": "contains", "value": "Alice"}
CHAT: dict[str, Any] = {
    "id": "t",
    "mode": "conversation",
    "turns": [{"input": "I am Alice.", "assert": [ALICE]}, {"input": "Who am I?", "expected_output": "Alice"}],
}


def test_the_first_turn_is_asked_and_the_others_are_what_the_user_says_then(tmp_path: Path) -> None:
    task = read_tests(tmp_path, CHAT).one
    assert task.prompt == "I am Alice."
    assert task.user is not None
    assert task.user.says == ("Who am I?",)


def test_the_input_goes_before_the_first_turn(tmp_path: Path) -> None:
    system = [{"role": "system", "content": "Be short."}]
    task = read_tests(tmp_path, CHAT | {"input": system}).one
    assert [message.role for message in task.messages] == ["system", "user"]


def test_a_conversation_has_one_grader_with_those_of_its_turns(tmp_path: Path) -> None:
    whole = CHAT | {"aggregation": "min", "on_turn_failure": "stop", "assert": [{"type": "is-json"}]}
    (grader,) = read_tests(tmp_path, whole).one.graders
    assert isinstance(grader, Turns)
    assert (grader.aggregation, grader.on_turn_failure) == ("min", "stop")
    assert [[inner.type for inner in turn.assertions] for turn in grader.turns] == [["contains"], []]
    assert [turn.expected_output for turn in grader.turns] == [None, "Alice"]
    assert [inner.type for inner in grader.conversation] == ["is_json"]


def test_a_conversation_of_one_turn_has_no_further_user(tmp_path: Path) -> None:
    assert read_tests(tmp_path, CHAT | {"turns": CHAT["turns"][:1]}).one.user is None


def test_variables_are_filled_into_turns(tmp_path: Path) -> None:
    turns = [{"input": "I am {{name}}.", "expected_output": "Hi {{name}}"}, {"input": "{{name}}?", "assert": [ALICE]}]
    task = read_tests(tmp_path, CHAT | {"turns": turns, "vars": {"name": "Alice"}}).one
    (grader,) = task.graders
    assert isinstance(grader, Turns)
    assert (task.prompt, task.user and task.user.says) == ("I am Alice.", ("Alice?",))
    assert grader.turns[0].expected_output == "Hi Alice"


def test_a_conversation_without_graders_is_incomplete(tmp_path: Path) -> None:
    (problem,) = read_tests(tmp_path, CHAT | {"turns": [{"input": "x"}]}).problems
    assert problem.startswith("tests[0]: incomplete test: it needs something that tells a good answer")


def test_what_is_wrong_with_turns_is_a_problem(tmp_path: Path) -> None:
    broken = CHAT | {"aggregation": "median", "turns": [{"inputs": "x"}, {"input": "", "assert": [ALICE]}]}
    assert read_tests(tmp_path, broken).problems == [
        "tests[0].turns[0].inputs: unknown key; did you mean 'input'?",
        "tests[0].turns[1].input: must not be empty",
        "tests[0].aggregation: \"median\" is not one of the allowed values; did you mean 'mean'?",
        "tests[0]: incomplete test: it needs `input`",
    ]


def test_a_conversation_needs_turns(tmp_path: Path) -> None:
    (problem,) = read_tests(tmp_path, {"id": "t", "input": "x", "criteria": "c", "mode": "conversation"}).problems
    assert problem == "tests[0].mode: a conversation needs `turns`"
