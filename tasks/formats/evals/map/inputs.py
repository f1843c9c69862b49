"""What the agent is asked: input, attached files, PROMPT.md, prompt templates; and the variables filled into it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passgate.tasks.formats.evals.map.messages import are_messages, file_block, is_message, read_messages
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.documents import FILE_SCHEME
from passgate.tasks.formats.evals.read.node import Node, Parts, as_items, as_text
from passgate.tasks.formats.evals.read.paths import first_of
from passgate.tasks.formats.evals.read.raw import RawTest
from passgate.tasks.formats.evals.read.variables import fill_variables, render_template
from passgate.tasks.formats.rules import Messages
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.messages import ContentBlock, TaskMessage

PROMPT_FILE = "PROMPT.md"
_ROUNDS = 3
"""How deep variables may stand in variables: one that stands in itself would never end."""
JUDGES_NAMES = frozenset(
    (
        *("input", "output", "expected_output", "criteria", "question", "answer", "reference_answer", "note"),
        *("metadata", "metadata_json", "rubrics", "rubrics_json", "file_changes", "tool_calls", "candidate_answer"),
        *("input_messages", "output_messages", "expected_messages", "evaluator_results_json"),
    )
)
"""Names that mean something in the prompts of judges."""


@dataclass(frozen=True)
class Variables:
    """What `{{ name }}` stands for in one test."""

    values: dict[str, Any]
    is_template: bool = False
    """Whether the texts of the test are templates, in which what is missing is empty; else it is left as it stands."""

    def filled(self, node: Node, sources: Sources) -> Node:
        """A value with the variables in it."""
        if self.is_template:
            return node.with_value(_rendered(node.value, {"vars": self.values, **self.values}, node, sources))
        return node.with_value(fill_variables(node.value, self.values)) if self.values else node

    def filled_at(self, said: Parts | Node, key: str, sources: Sources) -> Node | None:
        """The same at a key; `None` where there is none."""
        node = said.get(key)
        return None if node is None else self.filled(node, sources)

    def filled_in_graders(self, node: Node) -> Node:
        """Graders with the variables in them, where the texts of the test are templates; what a judge is told stays."""
        if not self.is_template:
            return node
        own = {name: value for name, value in self.values.items() if name not in JUDGES_NAMES}
        return node.with_value(fill_variables(node.value, {**own, "vars": self.values}))


def variables_of(test: Parts, raw: RawTest, sources: Sources) -> Variables:
    """The variables of a test. In the dialect with prompts they may hold each other, and come from files."""
    said = test.get("vars")
    if said is None or not isinstance(said.value, dict):
        return Variables({}, is_template=raw.prompt is not None)
    if raw.prompt is None and ("input" not in said.value or test.get("input") is not None):
        return Variables(said.value)
    values = {key: _from_file(said.child(key), sources) for key in said.value}
    for _ in range(_ROUNDS):
        names = {"vars": values, **values}
        values = {key: _rendered(value, names, said.child(key), sources) for key, value in values.items()}
    return Variables(values, is_template=True)


def read_input(test: Parts, raw: RawTest, variables: Variables, *, alone: bool, sources: Sources) -> Messages:
    """The messages of a test itself; none where it has none.

    `alone`: nothing that its file says of all tests is for this one.
    """
    files = _files(test, raw, variables, alone, sources)
    if raw.prompt is not None:
        return _of_prompt(raw.prompt, test, variables, sources)
    said = variables.filled_at(test, "input", sources)
    if said is not None:
        return _of_input(said, files, test, sources)
    if variables.is_template and test.get("vars") is not None:
        value = _chat(variables.values.get("input"))
        return read_messages(test.values["vars"].child("input").with_value(value), sources)
    if test.get("turns") is not None:
        return ()
    return _of_prompt_file(files, raw, sources)


def _files(test: Parts, raw: RawTest, variables: Variables, alone: bool, sources: Sources) -> tuple[Node, ...]:
    """The files attached to a test: its own or those of its file."""
    said = test.get("input_files") or (None if alone else raw.context.root.get("input_files"))
    if said is None:
        return ()
    filled = variables.filled(said, sources)
    items = (filled,) if isinstance(filled.value, str) else tuple(as_items(filled))
    for item in items:
        sources.refuses_kind(item, (Kind.TEXT,))
    return tuple(item for item in items if as_text(item))


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
    folders = dict.fromkeys((raw.node.folder, raw.context.file.parent))
    beside = first_of((folder / PROMPT_FILE for folder in folders), sources.ground, Path.is_file)
    if beside is None:
        return ()
    at = Node(PROMPT_FILE, raw.node.places, beside.parent, raw.node.path)
    text = sources.text(at, PROMPT_FILE)[1]
    return _with_files(text or "", files, sources)


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


def _from_file(node: Node, sources: Sources) -> Any:
    """A variable, which may be what a file holds."""
    if not isinstance(node.value, str) or not node.value.startswith(FILE_SCHEME):
        return node.value
    return sources.text(node, node.value.removeprefix(FILE_SCHEME))[1] or ""


def _rendered(value: Any, names: Mapping[str, Any], node: Node, sources: Sources) -> Any:
    """A value with its texts rendered. A text that is one placeholder becomes the variable's value with its type."""
    if isinstance(value, list):
        return [_rendered(item, names, node, sources) for item in value]
    if isinstance(value, dict):
        return {key: _rendered(item, names, node, sources) for key, item in value.items()}
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
