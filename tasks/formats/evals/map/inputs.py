"""What the agent is asked: input, attached files, PROMPT.md, prompt templates."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from passgate.tasks.formats.evals.map.contents import file_block
from passgate.tasks.formats.evals.map.filling import Variables
from passgate.tasks.formats.evals.map.messages import are_messages, is_message, read_messages
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Node, Parts, as_items
from passgate.tasks.formats.evals.read.paths import first_of
from passgate.tasks.formats.evals.read.raw import RawTest
from passgate.tasks.formats.rules import Messages
from passgate.tasks.formats.schema_check import Kind, wrong_kind
from passgate.tasks.model.messages import ContentBlock, TaskMessage

PROMPT_FILE = "PROMPT.md"


def read_input(test: Parts, raw: RawTest, variables: Variables, *, alone: bool, sources: Sources) -> Messages:
    """The messages of a test itself; none where it has none.

    `alone`: nothing that its file says of all tests is for this one.
    """
    files = _files(test, raw, variables, alone, sources)
    if raw.prompt is not None:
        return _of_prompt(raw.prompt, test, variables, sources)
    said = test.get("input")
    if said is not None:
        return _of_input(variables.filled(said, sources), files, test, sources)
    if variables.is_template and test.get("vars") is not None:
        value = _chat(variables.values.get("input"))
        return read_messages(test.values["vars"].child("input").with_value(value), sources)
    if test.get("turns") is not None:
        return ()
    return _of_prompt_file(files, raw, sources)


def read_suite_input(root: Node, variables: Variables, sources: Sources) -> Messages:
    """The messages that go before those of every test of a file."""
    said = root.get("input")
    return () if said is None else read_messages(variables.filled(said, sources), sources)


def _files(test: Parts, raw: RawTest, variables: Variables, alone: bool, sources: Sources) -> tuple[Node, ...]:
    """The files attached to a test: its own or those of its file."""
    said = test.get("input_files") or (None if alone else raw.context.root.get("input_files"))
    if said is None:
        return ()
    filled = variables.filled(said, sources)
    items = (filled,) if isinstance(filled.value, str) else tuple(as_items(filled))
    for item in items:
        message = wrong_kind(item.value, (Kind.TEXT,))
        if message is not None:
            sources.refuse(item, message)
    return tuple(item for item in items if isinstance(item.value, str) and item.value)


def _of_input(said: Node, files: Sequence[Node], test: Parts, sources: Sources) -> Messages:
    if isinstance(said.value, str):
        return _with_files(said.value, files, sources)
    own = test.get("input_files")
    if own is not None:
        sources.refuse(own, "`input_files` are for a text as input; write them as content blocks", at_key=True)
    return read_messages(said, sources)


def _with_files(text: str, files: Sequence[Node], sources: Sources) -> Messages:
    """One message of the user: the files, then the text."""
    if not text.strip():
        return ()
    if not files:
        return (TaskMessage(role="user", content=text),)
    blocks = [file_block(file, file.value, sources) for file in files]
    return (TaskMessage(role="user", content=(*blocks, ContentBlock(type="text", value=text))),)


def _of_prompt_file(files: Sequence[Node], raw: RawTest, sources: Sources) -> Messages:
    """A test without input gets PROMPT.md: the one among its files, else the one beside it or beside its eval file."""
    named = next((file for file in files if Path(file.value).name == PROMPT_FILE), None)
    if named is not None:
        text = sources.text(named, named.value)[1]
        others = [file for file in files if file is not named]
        return _with_files(text or "", others, sources)
    beside = first_of((folder / PROMPT_FILE for folder in _folders(raw)), sources.ground, Path.is_file)
    if beside is None:
        return ()
    at = Node(PROMPT_FILE, raw.node.places, beside.parent, raw.node.path)
    text = sources.text(at, PROMPT_FILE)[1]
    return _with_files(text or "", files, sources)


def _folders(raw: RawTest) -> tuple[Path, ...]:
    return tuple(dict.fromkeys((raw.node.folder, raw.context.file.parent)))


def _of_prompt(prompt: Node, test: Parts, variables: Variables, sources: Sources) -> Messages:
    """A prompt template with the variables of the test in it."""
    said = test.get("input")
    values = variables.values if said is None else {"input": said.value, **variables.values}
    filled = Variables(values, is_template=True).filled(prompt.with_value(_chat(prompt.value)), sources)
    return read_messages(filled.with_value(_chat(filled.value)), sources)


def _chat(value: Any) -> Any:
    """Messages that stand in a text as JSON; a value that is none for a message as a text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            messages = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return messages if are_messages(messages) else value
    if isinstance(value, list) and not any(map(is_message, value)):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if isinstance(value, int | float | bool) else value
