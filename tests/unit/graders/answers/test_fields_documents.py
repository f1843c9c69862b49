from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders.answers.fields import answer_document, expected_document, field_at
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.json_values import MISSING
from passgate.tasks.model.messages import ContentBlock, MessageCall, TaskMessage

DOCUMENT = {"items": [{"amount": 10}, {"amount": None}], "0": "zero"}


@pytest.mark.parametrize(
    "answer",
    [
        '{"a": 1}',
        ' \n{"a": 1}\n',
        'Here:\n```json\n{"a": 1}\n```\nAnything else?',
        'No: ```not json``` but ```\n{"a": 1}\n```',
        'It is {"a": 1}, I think.',
    ],
)
def test_the_document_of_an_answer(answer: str) -> None:
    assert answer_document(answer) == {"a": 1}


def test_a_list_is_a_document() -> None:
    assert answer_document('[{"a": 1}, {"a": 2}]') == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    "answer", ["", "42", "the total is 100", "}{", '{"a": NaN}', '{"a": 1} {"a": 2}', "{" * 10_000]
)
def test_answers_without_a_document(answer: str) -> None:
    with pytest.raises(ValueError, match="contains no JSON object or list"):
        answer_document(answer)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("items[0].amount", 10),
        ("items.0.amount", 10),
        ("items[1].amount", None),
        ("items[2].amount", MISSING),
        ("items[-1]", MISSING),
        ("0", "zero"),
        ("items.amount", MISSING),
        ("items[0].amount.more", MISSING),
    ],
)
def test_the_value_at_a_path(path: str, expected: Any) -> None:
    assert field_at(DOCUMENT, path) is expected


def said(content: Any, role: Any = "assistant", **fields: Any) -> TaskMessage:
    return TaskMessage(role=role, content=content, **fields)


@pytest.mark.parametrize(
    ("expected_output", "messages", "document"),
    [
        ({"a": 1}, (), {"a": 1}),
        ([1], (), [1]),
        ('{"a": 1}', (), {"a": 1}),
        ("no JSON", (), None),
        (None, (), None),
        (42, (), None),
        ({"a": 2}, (said('{"a": 1}'),), {"a": 1}),
        (None, (said('{"a": 0}'), said('{"a": 1}'), said("thanks", "user")), {"a": 1}),
        (None, (said('{"a": 1}'), said("", tool_calls=(MessageCall(tool="save"),))), {"a": 1}),
        (None, (said((ContentBlock(type="text", value="so:"), ContentBlock(type="json", value={"a": 1}))),), {"a": 1}),
        (None, (said((ContentBlock(type="text", value='{"a": 1}'),)),), {"a": 1}),
        (None, (said("thanks", "user"),), None),
    ],
)
def test_the_document_that_a_task_expects(
    expected_output: Any, messages: tuple[TaskMessage, ...], document: Any, make_evidence: Callable[..., Evidence]
) -> None:
    fields = {"expected_output": expected_output, "expected_messages": messages}
    assert expected_document(make_evidence().task.model_copy(update=fields)) == document
