"""The messages of a task file: their shape, and what the files hold that they name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.findings import Finding, check_path
from passgate.tasks.formats.text_files import read_text
from passgate.tasks.model.messages import ContentBlock, TaskMessage
from passgate.tasks.model.task import TaskFile

Messages = tuple[TaskMessage, ...]
MESSAGES: TypeAdapter[Messages] = TypeAdapter(Messages)
NO_FILES = ("data:", "https://", "http://")
"""How images begin that are no file."""

_ASKED: DocumentPath = ("inputs", "messages")
_EXPECTED: DocumentPath = ("expected_messages",)


def message_findings(task: TaskFile, root: Path) -> Iterator[Finding]:
    """Everything wrong with the messages of a task, those that it asks and those that it expects."""
    asked = task.inputs.get("messages")
    if asked is not None:
        if str(task.inputs.get("prompt") or "").strip():
            yield _ASKED, "give either `prompt` or `messages`"
        try:
            yield from _file_findings(_ASKED, MESSAGES.validate_python(asked), root)
        except ValidationError as error:
            for found in error.errors():
                yield (*_ASKED, *found["loc"]), found["msg"]
    yield from _file_findings(_EXPECTED, task.expected_messages, root)


def asked_messages(task: TaskFile, root: Path) -> Messages:
    """The messages of a task's inputs with what their files hold, where nothing is wrong with them."""
    return with_texts(MESSAGES.validate_python(task.inputs.get("messages") or ()), root)


def with_texts(messages: Messages, root: Path) -> Messages:
    """Messages with what their files hold."""
    return tuple(
        message
        if isinstance(message.content, str)
        else message.model_copy(update={"content": tuple(_with_text(block, root) for block in message.content)})
        for message in messages
    )


def _with_text(block: ContentBlock, root: Path) -> ContentBlock:
    return block.model_copy(update={"text": read_text(root / block.value)}) if block.type == "file" else block


def _file_findings(path: DocumentPath, messages: Messages, root: Path) -> Iterator[Finding]:
    for index, message in enumerate(messages):
        for position, block in enumerate(message.content if isinstance(message.content, tuple) else ()):
            if names_a_file(block):
                yield from _block_findings((*path, index, "content", position, "value"), block, root)


def names_a_file(block: ContentBlock) -> bool:
    """Whether the value of a block is a path: that of an image may be its data or an address."""
    return block.type == "file" or (block.type == "image" and not str(block.value).startswith(NO_FILES))


def _block_findings(path: DocumentPath, block: ContentBlock, root: Path) -> Iterator[Finding]:
    name: Any = block.value
    if not isinstance(name, str):
        yield path, "expected a path"
        return
    problems = list(check_path(path, name, root))
    yield from problems
    if not problems and block.type == "file":
        try:
            read_text(root / name)
        except ValueError as error:
            yield path, f"{name!r} {error}"
