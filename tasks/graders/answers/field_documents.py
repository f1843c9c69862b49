"""The two documents whose fields are compared: the one in the answer and the one that is expected."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from passgate.tasks.model.json_values import at_path, parse_json
from passgate.tasks.model.messages import ContentBlock, TaskMessage
from passgate.tasks.model.task import EvalTask

_PATH_SIGNS: Final = re.compile(r"[.\[\]]")


def answer_document(answer: str) -> Any:
    """The JSON object or list in an answer: all of it, else a code block, else from the first `{` to the last `}`.

    Raises `ValueError` when there is none.
    """
    for text in (answer, *_code_blocks(answer), in_braces(answer)):
        try:
            document = parse_json(text)
        except ValueError:
            continue
        if isinstance(document, dict | list):
            return document
    raise ValueError("the answer contains no JSON object or list")


def in_braces(text: str) -> str:
    """From the first `{` to the last `}`; empty without them."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else ""


def _code_blocks(text: str) -> Iterator[str]:
    for block in text.split("```")[1::2]:
        # The first line names the language.
        yield block.partition("\n")[2]


def expected_document(task: EvalTask) -> Any:
    """The object or list that a task expects, as such or as the JSON of a text; of messages that of the last one from
    the assistant. `None` when it expects none.
    """
    if not task.expected_messages:
        return _document(task.expected_output)
    said = [message for message in task.expected_messages if message.role == "assistant" and message.content]
    return _document(message_content(said[-1])) if said else None


def message_content(message: TaskMessage) -> Any:
    """The content of a message: the value of its JSON block where it has one, else its text."""
    if isinstance(message.content, str):
        return message.content
    return next((block.value for block in message.content if _is_json(block)), message.text)


def _is_json(block: ContentBlock) -> bool:
    return block.type == "json"


def _document(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return answer_document(value)
        except ValueError:
            return None
    return value if isinstance(value, Mapping | list | tuple) else None


def field_at(document: Any, path: str) -> Any:
    """The value at a path as in `items[0].amount`; `MISSING` when it is not there."""
    return at_path(document, ".".join(part for part in _PATH_SIGNS.split(path) if part))
