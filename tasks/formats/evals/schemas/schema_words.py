"""What the JSON Schemas of eval files are written with, and what those files have in common."""

from collections.abc import Sequence
from typing import Any, Final

from passgate.tasks.formats.evals.schemas.grader_schema import Schema, reference

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def headed(name: str, title: str, root: Schema, definitions: dict[str, Schema]) -> Schema:
    """A whole schema: keys of the file's own begin with `x-`."""
    own = {"^x-": {"description": "The file's own."}, r"^\$schema$": {"type": "string"}}
    head = {"$schema": DRAFT, "$id": f"urn:passgate:schema:{name}", "title": title}
    return {**head, **root, "patternProperties": own, "$defs": dict(sorted(definitions.items()))}


def described(says: str, **schema: Any) -> Schema:
    """A value of any type."""
    return {"description": says, **schema}


def text(says: str, **schema: Any) -> Schema:
    return {"description": says, "type": "string", **schema}


def number(says: str, **schema: Any) -> Schema:
    return {"description": says, "type": "number", "minimum": 0, **schema}


def whole(says: str, **schema: Any) -> Schema:
    return {"description": says, "type": "integer", "minimum": 0, **schema}


def truth(says: str) -> Schema:
    return {"description": says, "type": "boolean"}


def mapping(says: str, **schema: Any) -> Schema:
    """A mapping with any keys."""
    return {"description": says, "type": "object", **schema}


def texts(says: str) -> Schema:
    return {"description": says, "type": "array", "items": {"type": "string"}}


def listed(says: str, definition: str, **schema: Any) -> Schema:
    return {"description": says, "type": "array", "items": reference(definition), **schema}


def record(properties: dict[str, Schema], says: str = "", **schema: Any) -> Schema:
    """A mapping with these keys and no others."""
    head = {"description": says} if says else {}
    return {**head, "type": "object", "properties": properties, "additionalProperties": False, **schema}


def one_needed(*names: str) -> Schema:
    """At least one of the keys."""
    return {"anyOf": [{"required": [name]} for name in names]}


def goals_needed(lists: Sequence[str], graders: Sequence[str], goals: Sequence[str]) -> Schema:
    """Where a file has no graders, each test in its lists of tests has something to be graded by."""
    included = {"required": ["include"]}
    item = {"if": {"type": "object", "not": included}, "then": one_needed(*goals)}
    return {"if": {"not": one_needed(*graders)}, "then": {"properties": {name: {"items": item} for name in lists}}}


def text_or(says: str, *others: Schema) -> Schema:
    return {"description": says, "anyOf": [{"type": "string"}, *others]}


MESSAGE_LIST: Final[Schema] = {"type": "array", "items": {"$ref": "#/$defs/Message"}}
COMPATIBILITY: Final[Schema] = described("Scores as AgentV computes them, where it differs.", enum=["agentv"])
COMMON_TEST: Final[dict[str, Schema]] = {
    "id": text("Unique among the tests of the file.", minLength=1),
    "description": text("What the test is about, for readers."),
    "criteria": text("What a good answer is, in words; judges are told."),
    "expected_outcome": text("The earlier name of `criteria`."),
    "input_messages": {"description": "What the agent is asked, as messages.", **MESSAGE_LIST},
    "expected_messages": {"description": "The answer that is hoped for, as messages.", **MESSAGE_LIST},
    "rubrics": listed("Items of a rubric that a judge marks.", "RubricItem", minItems=1),
    "conversation_id": text("Tests of one conversation have the same."),
    "note": text("Told to judges only."),
    "metadata": mapping("Whatever else is to be known of the test."),
}
MESSAGES: Final[dict[str, Schema]] = {
    "ContentBlock": record(
        {
            "type": described("What the block is.", enum=["text", "file", "image", "json"]),
            "value": described("The text, the path of the file or image, or any JSON value."),
        },
        required=["type", "value"],
    ),
    "OpenAiCall": record(
        {
            "id": text("Unique; the message of the result names it."),
            "type": described("Always `function`.", const="function"),
            "function": record(
                {"name": text("The tool."), "arguments": text("The arguments as JSON.")},
                "What is called.",
                required=["name", "arguments"],
            ),
        },
        required=["function"],
    ),
}


def message_definition(*, call: str, content: tuple[str, ...] = ()) -> Schema:
    """A message whose tool calls are of a definition; beside texts and blocks its content may be of further types."""
    blocks: Schema = {"type": "array", "items": reference("ContentBlock")}
    return record(
        {
            "role": described("Who speaks.", enum=["system", "user", "assistant", "tool"]),
            "content": text_or("What is said.", blocks, *({"type": kind} for kind in content)),
            "name": text("Of a tool message: the tool."),
            "tool_call_id": text("Of a tool message: the call that it answers."),
            "tool_calls": listed("Of an assistant message: the tools that it calls.", call),
        },
        required=["role"],
    )
