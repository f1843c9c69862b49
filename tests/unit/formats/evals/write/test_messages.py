"""Messages and turns in the words of eval files."""

from passgate.tasks.formats.evals.write.tests import written_test
from tests.unit.formats.evals.write.test_tests import TASK


def test_messages_are_written_with_their_calls() -> None:
    messages = [
        {"role": "user", "content": [{"type": "file", "value": "./a.md"}]},
        {"role": "assistant", "tool_calls": [{"tool": "get", "arguments": {"x": 1}, "result": "y"}]},
    ]
    test = written_test({**TASK, "inputs": {"messages": messages}, "expected_messages": messages[1:]})
    calls = [{"tool": "get", "input": {"x": 1}, "output": "y"}]
    assert test["input"] == [
        {"role": "user", "content": [{"type": "file", "value": "./a.md"}]},
        {"role": "assistant", "tool_calls": calls},
    ]
    assert test["expected_output"] == [{"role": "assistant", "tool_calls": calls}]


def test_a_conversation_is_turns() -> None:
    turns = {
        "type": "turns",
        "turns": [{"assertions": [{"type": "contains", "value": "a"}]}, {"expected_output": "b"}],
        "conversation": [{"type": "contains", "value": "c"}],
        "on_turn_failure": "stop",
    }
    test = written_test({**TASK, "environment": {"user": {"says": ["And then?"]}}, "graders": [turns]})
    assert test["mode"] == "conversation"
    assert test["turns"] == [
        {"input": "Hi", "assert": [{"type": "contains", "value": "a"}]},
        {"input": "And then?", "expected_output": "b"},
    ]
    assert test["assert"] == [{"type": "contains", "value": "c"}]
    assert test["on_turn_failure"] == "stop"
    assert "input" not in test


def test_turns_that_nobody_says_are_a_grader() -> None:
    turns = {"type": "turns", "turns": [{"assertions": [{"type": "llm_grader"}]}, {}]}
    assert written_test({**TASK, "graders": [turns]})["assert"] == [
        {"type": "turns", "turns": [{"assertions": [{"type": "llm_judge"}]}, {}]}
    ]
