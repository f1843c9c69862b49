"""From a raw test to a task as four-suite files have it: what it asks and expects, its metadata, tags and suite."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from passgate.tasks.formats.discover import SUITES, suite_of
from passgate.tasks.formats.evals.map.conversations import ReadConversation, read_conversation, with_turns
from passgate.tasks.formats.evals.map.graders import Graders, read_own_graders
from passgate.tasks.formats.evals.map.messages import Expected, Variables, read_expected, read_input, variables_of
from passgate.tasks.formats.evals.map.native import with_native
from passgate.tasks.formats.evals.map.runtime import RUN_KEYS, check_runtime, run_of
from passgate.tasks.formats.evals.map.sources import Sources, add_complaints
from passgate.tasks.formats.evals.read.node import Complaints, Key, Node, Parts, as_mapping, as_text, take_apart
from passgate.tasks.formats.evals.read.raw import RawTest
from passgate.tasks.formats.rules import Messages
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.json_values import strictly_equal
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.task import Suite, TaskFile

_DEFAULT = LlmGrader(type="llm_grader")
"""Grades a test that has criteria or an expected answer and no grader."""
_TEXT, _LIST, _MAPPING = (Kind.TEXT,), (Kind.LIST,), (Kind.MAPPING,)
TEST_KEYS = {
    "criteria": Key(_TEXT, spellings=("expected_outcome",)),
    "input": Key(spellings=("input_messages",)),
    **dict.fromkeys(("input_files", "depends_on"), Key((*_LIST, *_TEXT), items=_TEXT)),
    "turns": Key(_LIST, items=_MAPPING),
    "tags": Key((*_LIST, *_MAPPING, *_TEXT)),
    "repeat": Key((Kind.WHOLE, Kind.MAPPING)),
    "window_size": Key((Kind.WHOLE,)),
    **dict.fromkeys(("id", "conversation_id"), Key((Kind.TEXT, Kind.WHOLE))),
    **dict.fromkeys(("description", "note", "suite", "category", "target", "mode", "aggregation"), Key(_TEXT)),
    **dict.fromkeys(("on_turn_failure", "on_dependency_failure"), Key(_TEXT)),
    **dict.fromkeys(("metadata", "governance", "execution", "run", "vars", "options", "passgate"), Key(_MAPPING)),
    **dict.fromkeys(("rubrics", "assert", "assertions", "evaluators", "targets"), Key(_LIST)),
    **dict.fromkeys(("threshold", "timeout_seconds"), Key((Kind.NUMBER,))),
    **dict.fromkeys(("workspace", "environment"), Key((*_MAPPING, *_TEXT))),
    **dict.fromkeys(("expected_output", "expected_messages"), Key()),
    **dict.fromkeys(("provider", "providers", "prompts", "preprocessors"), Key()),
}
OPTIONS_KEYS = {
    **dict.fromkeys(("provider", "transform", "transform_vars", "postprocess", "rubric_prompt"), Key()),
    **dict.fromkeys(("prefix", "suffix", "store_output_as"), Key(_TEXT)),
    **dict.fromkeys(("disable_var_expansion", "disable_conversation_memory", "run_serially"), Key((Kind.TRUTH,))),
    "repeat": Key((Kind.WHOLE,)),
}
OPTIONS_NOT_HAD = {
    "transform": "passgate transforms no answers",
    "transform_vars": "passgate transforms no variables",
    "postprocess": "passgate transforms no answers",
    "prefix": "passgate has no prefix of prompts",
    "suffix": "passgate has no suffix of prompts",
    "rubric_prompt": "a judge's prompt stands with its grader",
    "store_output_as": "every trial stands alone: no test gets the answer of another",
}
_INTO_METADATA = ("governance", "category")
TRACKED = ("tokens", "latency", "cost", "tool_use")


@dataclass(frozen=True)
class SuiteWide:
    """The parts of a file that every test of it has, with what there is to complain of them."""

    messages: Messages
    graders: Graders
    has_places: bool
    """Whether a test's variables change it."""
    complaints: Complaints


WideFor = Callable[[Variables], SuiteWide]
"""What the file says of all its tests, with the variables of one."""


@dataclass(frozen=True)
class ReadTest:
    """A test that has been read."""

    task: TaskFile
    messages: Messages
    """What the agent is asked, where that is more than one text."""
    suite_assumed: bool


@dataclass(frozen=True)
class _Content:
    """What a test asks and what it expects."""

    messages: Messages
    conversation: ReadConversation
    criteria: str
    expected: Expected
    graders: tuple[Grader, ...]

    @property
    def prompt(self) -> str | None:
        """What is asked, where it is one text of the user."""
        if len(self.messages) == 1 and self.messages[0].role == "user" and isinstance(self.messages[0].content, str):
            return self.messages[0].content
        return None


def read_test(raw: RawTest, wide_for: WideFor, compat: Any, sources: Sources) -> ReadTest | None:
    """A test as a task; `None` where something is wrong with it or its file, and then the complaints say what."""
    before = len(sources.complaints.problems)
    test = take_apart(raw.node, TEST_KEYS, sources.complaints)
    _check(test, raw, sources)
    content = _content(test, raw, wide_for, sources)
    fields = {**_told(test, raw, content), **run_of(test, raw, content.conversation.user, compat, sources)}
    metadata = _metadata_of(test, raw.context.root)
    tags = _tags_of(test, raw.context.root, metadata)
    suite = _belongs_to(test, raw, metadata, tags, sources)
    if len(sources.complaints.problems) > before:
        return None
    own = {"suite": suite or Suite.GOLDEN, "tags": tags, "metadata": {**_other_suite(test, raw), **metadata}}
    messages = () if content.prompt is not None else content.messages
    task = with_native(TaskFile(**fields, **own), test, sources)
    return None if len(sources.complaints.problems) > before else ReadTest(task, messages, suite_assumed=suite is None)


def _check(test: Parts, raw: RawTest, sources: Sources) -> None:
    """What is wrong with a test as a whole, and what it asks for that is not to be had."""
    if _id(test, raw) is None:
        sources.refuse(test.node, "the key 'id' is missing")
    check_runtime(test.node, sources)
    for run in raw.runs:
        take_apart(run, RUN_KEYS, sources.complaints)
    sources.cannot_have(test, {"preprocessors": "passgate runs no preprocessors of files"})
    options = as_mapping(test.get("options"))
    if options is not None:
        sources.cannot_have(take_apart(options, OPTIONS_KEYS, sources.complaints), OPTIONS_NOT_HAD)


def _id(test: Parts, raw: RawTest) -> str | None:
    said = test.value("id", raw.default_id)
    return str(said) if said is not None and str(said).strip() else None


def _content(test: Parts, raw: RawTest, wide_for: WideFor, sources: Sources) -> _Content:
    variables = variables_of(test, raw, sources)
    wide = wide_for(variables)
    add_complaints(sources.complaints, wide.complaints)
    execution, criteria = as_mapping(test.get("execution")), variables.filled_at(test, "criteria", sources)
    alone = execution is not None and execution.value.get("skip_defaults") is True
    conversation = read_conversation(test, variables, sources)
    own = read_input(test, raw, variables, alone=alone, sources=sources)
    graders = read_own_graders(test.node, variables, sources)
    said = graders.said or conversation.is_graded or (wide.graders.said and not alone)
    listed = (*graders.all, *(() if alone else wide.graders.all))
    content = _Content(
        messages=(*(() if alone else wide.messages), *own, *conversation.opening),
        conversation=conversation,
        criteria="" if criteria is None else str(criteria.value),
        expected=_expected(test, variables, sources),
        graders=with_turns(conversation, listed if said else (_DEFAULT,)),
    )
    _refuse_incomplete(test, content, asks=bool(own or conversation.opening), is_graded=said, sources=sources)
    return content


def _expected(test: Parts, variables: Variables, sources: Sources) -> Expected:
    given = as_mapping(test.get("vars"))
    of_vars = variables.is_template and given is not None and "expected_output" in given.value
    if given is not None and of_vars and test.get("expected_output") is None:
        of_given = given.child("expected_output").with_value(variables.values["expected_output"])
        return read_expected(of_given, test.get("expected_messages"), sources)
    short, long = (variables.filled_at(test, key, sources) for key in ("expected_output", "expected_messages"))
    return read_expected(short, long, sources)


def _refuse_incomplete(test: Parts, content: _Content, *, asks: bool, is_graded: bool, sources: Sources) -> None:
    """A test must ask something, and something must tell a good answer."""
    value, messages = content.expected
    missing = [] if asks else ["`input`"]
    if not (is_graded or content.criteria.strip() or value is not None or messages):
        criteria = test.get("criteria")
        if criteria is not None:
            sources.cannot_run(criteria, "nothing tells a good answer: the criteria are empty")
        else:
            missing.append("something that tells a good answer (`criteria`, `expected_output` or `assert`)")
    if missing:
        sources.refuse(test.node, f"incomplete test: it needs {' and '.join(missing)}")


def _told(test: Parts, raw: RawTest, content: _Content) -> dict[str, Any]:
    """What the agent and the judges are told."""
    value, messages = content.expected
    asked: dict[str, Any] = {"prompt": content.prompt}
    if content.prompt is None:
        asked = {"messages": [_as_written(message) for message in content.messages]}
    conversation_id = test.value("conversation_id")
    return {
        "task_id": _id(test, raw) or "",
        "description": as_text(test.get("description")) or "",
        "inputs": asked,
        "graders": content.graders,
        "tracked_metrics": TRACKED,
        "criteria": content.criteria,
        "expected_output": value,
        "expected_messages": messages,
        "note": as_text(test.get("note")) or "",
        "conversation_id": str(conversation_id) if conversation_id is not None else None,
    }


def _as_written(message: TaskMessage) -> dict[str, Any]:
    """A message as task files have it: without what its files held."""
    if isinstance(message.content, str) and not message.tool_calls and message.role != "tool":
        return {"role": message.role, "content": message.content}
    written = message.model_dump(mode="json", exclude_defaults=True)
    for block in written["content"] if isinstance(written.get("content"), list) else ():
        block.pop("text", None)
    return dict(written)


def _metadata_of(test: Parts, root: Node) -> dict[str, Any]:
    """The metadata of a test with that of its file under it."""
    own = {key: test.value(key) for key in ("metadata", *_INTO_METADATA)}
    return merged(_metadata(root.value), _metadata(own))


def _metadata(said: Mapping[str, Any]) -> dict[str, Any]:
    further = {key: value for key in _INTO_METADATA if (value := said.get(key)) is not None}
    metadata = said.get("metadata")
    return further | metadata if isinstance(metadata, dict) else further


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Two mappings as one: lists are joined without repeating anything, mappings merged, else `over` counts."""
    both = {key: _merged_value(under[key], value) for key, value in over.items() if key in under}
    return {**under, **over, **both}


def _merged_value(under: Any, over: Any) -> Any:
    if isinstance(under, Mapping) and isinstance(over, Mapping):
        return merged(under, over)
    if isinstance(under, list) and isinstance(over, list):
        items: list[Any] = []
        for item in (*under, *over):
            if not any(strictly_equal(item, known) for known in items):
                items.append(item)
        return items
    return over


def _tags_of(test: Parts, root: Node, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The tags of a test: those of its file first, of each only one."""
    said = (root.value.get("tags"), test.value("tags"), metadata.get("tags"))
    return tuple(dict.fromkeys(tag for value in said for tag in _tags(value)))


def _tags(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (f"{key}={item}" for key, item in value.items() if isinstance(item, str | int | float))
    elif isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (str(item) for item in value if isinstance(item, str | int | float))


def _belongs_to(
    test: Parts, raw: RawTest, metadata: Mapping[str, Any], tags: Sequence[str], sources: Sources
) -> Suite | None:
    """The suite that is named by `suite`, `metadata.suite`, a tag or else the folder of the file; `None` without any.

    A `suite` of any other name is the other tool's.
    """
    folder = suite_of(raw.runtime.file)
    roots = (raw.context.root.value, raw.runtime.root.value)
    names = [test.value("suite"), metadata.get("suite"), *(root.get("suite") for root in roots), *tags]
    named = next((SUITES[name] for name in names if isinstance(name, str) and name in SUITES), None)
    if named is not None and folder is not None and named is not folder and raw.context is raw.runtime:
        sources.refuse(test.node, f"the file lies in the folder of {folder!s}; move it or write `suite: {folder!s}`")
    return named or folder


def _other_suite(test: Parts, raw: RawTest) -> dict[str, str]:
    """A suite's name that is none of the four, as metadata."""
    names = (test.value("suite"), raw.context.root.value.get("suite"))
    return next(({"suite": name} for name in names if isinstance(name, str) and name not in SUITES), {})
