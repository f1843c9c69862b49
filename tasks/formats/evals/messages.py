"""Messages of eval files: what the agent is asked and expected to say, and the variables filled into it."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from passgate.tasks.formats.evals.documents import FILE_SCHEME
from passgate.tasks.formats.evals.node import Node, as_items
from passgate.tasks.formats.evals.raw import RawTest
from passgate.tasks.formats.evals.variables import fill_variables, render_template
from passgate.tasks.formats.evals.words import EvalWords, Parts, Sources, present, take_apart, word
from passgate.tasks.formats.rules import NO_FILES, Messages
from passgate.tasks.formats.schema_check import nearest, shown
from passgate.tasks.model.base import Amount
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.messages import ContentBlock, MessageCall, TaskMessage

PROMPT_FILE = "PROMPT.md"
_ROUNDS = 3  # how deep variables may refer to variables: one that refers to itself would never end
# In the prompts of judges these names have a meaning of their own.
JUDGES_NAMES = {
    *("input", "output", "expected_output", "criteria", "question", "answer", "reference_answer", "note"),
    *("metadata", "metadata_json", "rubrics", "rubrics_json", "file_changes", "tool_calls", "candidate_answer"),
    *("input_messages", "output_messages", "expected_messages", "evaluator_results_json"),
}
ROLES = ("system", "user", "assistant", "tool")


class MessageWords(EvalWords):
    """A message."""

    UNUSED = ("metadata", "duration_ms", "start_time", "end_time", "token_usage", "cost_usd")

    role: Literal["system", "user", "assistant", "tool"] = word("Who speaks.", needed=True)
    content: Any = word("What is said: a text, or blocks.")
    name: str = word("Of a tool's message: the tool.")
    tool_call_id: str = word("Of a tool's message: the call that it answers.")
    tool_calls: list[dict[str, Any]] = word("Of an assistant's message: the tools that it calls.")


class OpenAiCall(EvalWords):
    """A tool call as OpenAI writes it."""

    id: str = word("Unique; the message of the result names it.")
    type: str = word("Always `function`.")
    function: dict[str, Any] = word("What is called.", needed=True)
    index: float = word("Not used.")


class Function(EvalWords):
    """What is called."""

    name: str = word("The tool.", needed=True)
    arguments: str | dict[str, Any] = word("The arguments, also as a JSON text.")


class ToolCallWords(EvalWords):
    """A tool call."""

    UNUSED = ("start_time", "end_time", "error", "metadata")

    tool: str = word("The tool.", "tool", "name", needed=True)
    arguments: Any = word("The arguments.", "arguments", "input", "args")
    result: Any = word("The result.", "result", "output")
    id: Any = word("Of the call.")
    status: str = word("How it ended.")
    duration_ms: Amount = word("How long it took.")


class TextBlock(EvalWords):
    """A block of a message: a text, or any value in its place."""

    type: str = word("What the block is.", needed=True)
    value: Any = word("The text.", "value", "text", needed=True)


class FileBlock(EvalWords):
    """A block of a message: a file or an image."""

    type: str = word("What the block is.", needed=True)
    value: str = word("The path.", "value", "path", needed=True)


class JsonBlock(EvalWords):
    """A block of a message: any JSON value."""

    NULL = frozenset({"value"})

    type: str = word("What the block is.", needed=True)
    value: Any = word("The value.", needed=True)


_BLOCKS: dict[str, type[EvalWords]] = {"text": TextBlock, "file": FileBlock, "image": FileBlock, "json": JsonBlock}
# The types of images by the first bytes.
_IMAGE_TYPES = {b"\x89PNG\r\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
_LONGEST_PATH = 1024  # a longer text that is base64 is meant as an image: macOS knows no longer paths
Expected = tuple[Any, tuple[TaskMessage, ...]]  # a value or messages; at most one of them says something


def _is_message(value: Any) -> bool:
    """Return whether a value is a message: a mapping with a role, which no structured payload has."""
    return isinstance(value, dict) and "role" in value


def _are_messages(value: Any) -> bool:
    """Return whether a value is a list with a message in it: a role that says or does something."""
    items = value if isinstance(value, list) else ()
    return any(_is_message(item) and ("content" in item or "tool_calls" in item) for item in items)


def read_messages(node: Node, sources: Sources) -> tuple[TaskMessage, ...]:
    """Return a text or a payload as the message of a user, a message, or a list of messages."""
    value = node.value
    if isinstance(value, str):
        return (TaskMessage(role="user", content=value),) if value.strip() else ()
    if _is_message(value):
        return present([_message(node, sources)])
    if isinstance(value, dict):
        return (TaskMessage(role="user", content=(ContentBlock(type="json", value=value),)),)
    if isinstance(value, list):
        return present(_message(item, sources) for item in node.items())
    sources.refuse(node, f"expected a text, a message or messages, not {shown(value)}")
    return ()


def _message(node: Node, sources: Sources) -> TaskMessage | None:
    if not _is_message(node.value):
        sources.refuse(node, f"expected a message with `role` and `content`, not {shown(node.value)}")
        return None
    role, content = node.value["role"], node.value.get("content")
    if len(node.value) == 2 and role in ROLES and isinstance(content, str):
        return TaskMessage(role=role, content=content)  # as most messages are: no need to take them apart
    parts = take_apart(node, MessageWords, sources)
    if not parts.sound:
        return None
    if parts.get("content") is None and parts.get("tool_calls") is None:
        sources.refuse(node, "a message needs `content` or `tool_calls`")
    return TaskMessage(
        role=parts.value("role"),
        content=_content(parts.get("content"), sources),
        name=parts.value("name") or None,
        tool_call_id=parts.value("tool_call_id") or None,
        tool_calls=present(_call(item, sources) for item in as_items(parts.get("tool_calls"))),
    )


def read_expected(short: Node | None, long: Node | None, sources: Sources) -> Expected:
    """`expected_output` and `expected_messages` of a test; both have to say the same."""
    if long is None:
        return (None, ()) if short is None else _read_answer(short, sources)
    if not isinstance(long.value, list) and not _is_message(long.value):
        what = f"expected messages with `role` and `content`, not {shown(long.value)}"
        sources.refuse(long, f"{what}: write a text or a value as `expected_output`")
        return None, ()
    messages = read_messages(long, sources)
    if short is not None:
        value, said = _read_answer(short, sources)
        if (said[-1].text if said else str(value)) != (messages[-1].text if messages else "None"):
            sources.refuse(long, "says something else than expected_output; keep one of them", at_key=True)
    return None, messages


def _read_answer(node: Node, sources: Sources) -> Expected:
    # The expected value may itself have a key `role`, with another meaning.
    if (_is_message(node.value) and node.value["role"] in ROLES) or _are_messages(node.value):
        return None, read_messages(node, sources)
    return node.value, ()


def _content(node: Node | None, sources: Sources) -> str | tuple[ContentBlock, ...]:
    """Return a text or blocks; any other value as a JSON block; empty without a value."""
    if node is None:
        return ""
    if isinstance(node.value, str):
        return node.value
    items = node.value if isinstance(node.value, list) else ()
    if any(isinstance(item, str) or (isinstance(item, dict) and "type" in item) for item in items):
        return present(_block(item, sources) for item in node.items())
    return (ContentBlock(type="json", value=node.value),)


def _file_block(node: Node, sources: Sources) -> ContentBlock:
    path, text = sources.text(node, node.value)
    return ContentBlock(type="file", value=path, text=text)


def _block(node: Node, sources: Sources) -> ContentBlock | None:
    if isinstance(node.value, str):
        return ContentBlock(type="text", value=node.value)
    kind = node.value.get("type") if isinstance(node.value, dict) else None
    words = _BLOCKS.get(kind) if isinstance(kind, str) else None
    if words is None:
        sources.refuse(node, f"{shown(kind or node.value)} is not a kind of content{nearest(kind, list(_BLOCKS))}")
        return None
    block = take_apart(node, words, sources)
    if not block.sound:
        return None
    value = block.values["value"]
    if kind == "file":
        return _file_block(value, sources)
    if kind == "image":
        return ContentBlock(type="image", value=_image(value, sources))
    # A variable in place of the text may have any value.
    is_text = kind == "text" and isinstance(value.value, str)
    return ContentBlock(type="text" if is_text else "json", value=value.value)


def _image(node: Node, sources: Sources) -> str:
    """Return the path or URL of an image; base64 in the file becomes a data URL."""
    text: str = node.value
    if text.startswith(NO_FILES):
        return text
    plain = "".join(text.split())  # base64 may have line breaks and no padding
    try:
        raw = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError:
        raw = b""
    kind = next((kind for begin, kind in _IMAGE_TYPES.items() if raw.startswith(begin)), None)
    if kind is not None:
        return f"data:image/{kind};base64,{plain}"
    if raw and len(text) > _LONGEST_PATH:
        known = ", ".join(_IMAGE_TYPES.values())
        sources.refuse(node, f"base64 of no {known}: write its type, as in data:image/TYPE;base64,...")
        return text
    path = sources.path(node, text)
    return text if path is None else sources.ground.relative(path)


def _call(node: Node, sources: Sources) -> MessageCall | None:
    is_openai = "function" in node.value
    call = take_apart(node, OpenAiCall if is_openai else ToolCallWords, sources)
    if not call.sound:
        return None
    named = take_apart(call.values["function"], Function, sources) if is_openai else call
    arguments = _arguments(named.get("arguments"), sources)
    if not (tool := named.value("name" if is_openai else "tool")):
        return None
    return MessageCall(
        id=str(call.value("id", "")),
        tool=tool,
        arguments=arguments,
        result=call.value("result"),
        duration_ms=call.value("duration_ms"),
    )


def _arguments(node: Node | None, sources: Sources) -> dict[str, Any]:
    """Return arguments by name; a value without a name is that of `input`."""
    if node is None:
        return {}
    value, problem = node.value, ""
    if isinstance(value, str) and node.path[-1] == "arguments":
        try:
            value = parse_json(value or "{}")
        except ValueError as error:
            problem = f": {error}"
        if problem or not isinstance(value, dict):
            sources.refuse(node, f"arguments are a mapping, also as a JSON text{problem}")
            return {}
    return value if isinstance(value, dict) else {"input": value}


@dataclass(frozen=True)
class Variables:
    """What `{{ name }}` stands for in one test."""

    values: dict[str, Any]
    # In a template a missing variable is empty; elsewhere its placeholder stays as it is.
    is_template: bool = False

    def filled(self, node: Node, sources: Sources) -> Node:
        """Return a value with the variables filled in."""
        if self.is_template:
            return node.with_value(_render(node.value, {"vars": self.values, **self.values}, node, sources))
        return node.with_value(fill_variables(node.value, self.values)) if self.values else node

    def fill_at(self, said: Parts | Node, key: str, sources: Sources) -> Node | None:
        """Return the same at a key; `None` where there is none."""
        node = said.get(key)
        return None if node is None else self.filled(node, sources)

    def fill_graders(self, node: Node) -> Node:
        """Graders with variables filled in when the test's texts are templates, but for the placeholders of judges."""
        if not self.is_template:
            return node
        # A variable called `input` must not replace the agent's input in the judge's prompt.
        own = {name: value for name, value in self.values.items() if name not in JUDGES_NAMES}
        return node.with_value(fill_variables(node.value, {**own, "vars": self.values}))


def read_variables(test: Parts, raw: RawTest, sources: Sources) -> Variables:
    """Return the variables of a test. In the dialect with prompts they may refer to each other and to files."""
    said = test.get("vars")
    if said is None or not isinstance(said.value, dict):
        return Variables({}, is_template=raw.prompt is not None)
    if raw.prompt is None and ("input" not in said.value or test.get("input") is not None):
        return Variables(said.value)
    values: dict[str, Any] = {}
    for key, value in said.value.items():
        values[key] = value
        if isinstance(value, str) and value.startswith(FILE_SCHEME):
            values[key] = sources.text(said.child(key), value.removeprefix(FILE_SCHEME))[1] or ""
    for _ in range(_ROUNDS):
        names = {"vars": values, **values}
        values = {key: _render(value, names, said.child(key), sources) for key, value in values.items()}
    return Variables(values, is_template=True)


def read_input(test: Parts, raw: RawTest, variables: Variables, *, alone: bool, sources: Sources) -> Messages:
    """Return the messages of a test itself; `alone`: what its file says of all tests is not for it."""
    named = test.get("input_files") or (None if alone else raw.context.root.get("input_files"))
    filled = None if named is None else variables.filled(named, sources)
    items = (filled,) if filled is not None and isinstance(filled.value, str) else tuple(as_items(filled))
    files = [item for item in items if not sources.refuses_type(item, str) and item.value]
    said, own = test.get("input"), test.get("input_files")
    if raw.prompt is not None:
        values = variables.values if said is None else {"input": said.value, **variables.values}
        filled = Variables(values, is_template=True).filled(raw.prompt.with_value(_chat(raw.prompt.value)), sources)
        return read_messages(filled.with_value(_chat(filled.value)), sources)
    if said is not None:
        said = variables.filled(said, sources)
        if isinstance(said.value, str):
            return _insert_files(said.value, files, sources)
        if own is not None:
            sources.refuse(own, "`input_files` are for a text as input; write them as content blocks", at_key=True)
        return read_messages(said, sources)
    if variables.is_template and test.get("vars") is not None:
        value = _chat(variables.values.get("input"))
        return read_messages(test.values["vars"].child("input").with_value(value), sources)
    # A conversation has its input in its turns.
    return () if test.get("turns") is not None else _of_prompt_file(files, raw, sources)


def _insert_files(text: str, files: Sequence[Node], sources: Sources) -> Messages:
    if not text.strip():
        return ()
    blocks = [_file_block(file, sources) for file in files]
    content = (*blocks, ContentBlock(type="text", value=text)) if blocks else text
    return (TaskMessage(role="user", content=content),)


def _of_prompt_file(files: Sequence[Node], raw: RawTest, sources: Sources) -> Messages:
    """Return the messages of PROMPT.md: the one among the test's files, else beside it or its eval file."""
    named = next((file for file in files if Path(file.value).name == PROMPT_FILE), None)
    others = [file for file in files if file is not named]
    if named is None:
        candidates = (folder / PROMPT_FILE for folder in dict.fromkeys((raw.node.folder, raw.context.file.parent)))
        if (beside := sources.ground.first_existing(candidates, Path.is_file)) is None:
            return ()
        named = Node(PROMPT_FILE, raw.node.places, beside.parent, raw.node.path)
    return _insert_files(sources.text(named, named.value)[1] or "", others, sources)


def _chat(value: Any) -> Any:
    """JSON text of messages as messages; any other list, number or truth value as JSON text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            messages = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return messages if _are_messages(messages) else value
    if isinstance(value, list) and not any(map(_is_message, value)):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if isinstance(value, int | float | bool) else value


def _render(value: Any, names: Mapping[str, Any], node: Node, sources: Sources) -> Any:
    """Return a value with its texts rendered. A text that is only a placeholder becomes the value of any type."""
    if isinstance(value, list):
        return [_render(item, names, node, sources) for item in value]
    if isinstance(value, dict):
        return {key: _render(item, names, node, sources) for key, item in value.items()}
    if not isinstance(value, str) or "{" not in value:
        return value
    whole = fill_variables(value, names) if value.strip().startswith("{{") else value
    if not isinstance(whole, str):
        return whole
    try:
        return render_template(value, names)
    except ValueError as error:
        sources.refuse(node, str(error))
        return value
