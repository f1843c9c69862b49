"""What the JSON Schemas of eval files are made of: words, messages, and graders from the tables they are read with."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

from pydantic import BaseModel

from passgate.tasks.formats.evals.map.answer_forms import FIELD_KEYS
from passgate.tasks.formats.evals.map.forms import Form
from passgate.tasks.formats.evals.map.graders import AGGREGATOR_KEYS, BASE_KEYS, DESCRIPTION, FORMS
from passgate.tasks.formats.evals.map.judges import ITEM_KEYS, RANGE_KEYS
from passgate.tasks.formats.evals.map.trial_forms import EXPECTED_KEYS
from passgate.tasks.formats.evals.read.node import Key, Keys
from passgate.tasks.formats.schema_check import JSON_TYPES, Kind
from passgate.tasks.model.assertions import Criterion, ExpectedCall, FieldCheck, ScoreRange
from passgate.tasks.model.graders import Aggregator

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

_CONSTRAINTS = ("minimum", "maximum", "exclusiveMinimum", "enum", "const", "minItems", "minLength", "pattern")
# What the items of a list are, by the key of the list.
_LISTS = {
    **dict.fromkeys(("assertions", "evaluators", "assert"), "Assertion"),
    "fields": "FieldCheck",
    "expected": "ExpectedCall",
    **dict.fromkeys(("rubrics", "items"), "RubricItem"),
}
_INNER: dict[str, tuple[Keys, type[BaseModel]]] = {
    "FieldCheck": (FIELD_KEYS, FieldCheck),
    "ExpectedCall": (EXPECTED_KEYS, ExpectedCall),
    "RubricMapping": (ITEM_KEYS, Criterion),
    "ScoreRange": (RANGE_KEYS, ScoreRange),
    "Aggregator": (AGGREGATOR_KEYS, Aggregator),
}


def reference(name: str) -> Schema:
    """A reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def headed(name: str, title: str, root: Schema, definitions: dict[str, Schema]) -> Schema:
    """A whole schema: keys of the file's own begin with `x-`."""
    own = {"^x-": {"description": "The file's own."}, r"^\$schema$": {"type": "string"}}
    head = {"$schema": DRAFT, "$id": f"urn:passgate:schema:{name}", "title": title}
    return {**head, **root, "patternProperties": own, "$defs": dict(sorted(definitions.items()))}


def described(says: str, **schema: Any) -> Schema:
    """A value of any type, or of the types that the schema says."""
    return {"description": says, **schema}


text = partial(described, type="string")
number = partial(described, type="number", minimum=0)
whole = partial(described, type="integer", minimum=0)
truth = partial(described, type="boolean")
mapping = partial(described, type="object")
texts = partial(described, type="array", items={"type": "string"})


def listed(says: str, definition: str, **schema: Any) -> Schema:
    return {"description": says, "type": "array", "items": reference(definition), **schema}


def record(says: str = "", required: Sequence[str] = (), /, **properties: Schema) -> Schema:
    """A mapping with these keys and no others."""
    head = {"description": says} if says else {}
    needed = {"required": list(required)} if required else {}
    return {**head, "type": "object", "properties": properties, "additionalProperties": False, **needed}


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
        "",
        ["type", "value"],
        type=described("What the block is.", enum=["text", "file", "image", "json"]),
        value=described("The text, the path of the file or image, or any JSON value."),
    ),
    "OpenAiCall": record(
        "",
        ["function"],
        id=text("Unique; the message of the result names it."),
        type=described("Always `function`.", const="function"),
        function=record(
            "What is called.",
            ["name", "arguments"],
            name=text("The tool."),
            arguments=text("The arguments as JSON."),
        ),
    ),
}


def message_definition(*, call: str, content: tuple[str, ...] = ()) -> Schema:
    """A message whose tool calls are of a definition; beside texts and blocks its content may be of further types."""
    blocks: Schema = {"type": "array", "items": reference("ContentBlock")}
    return record(
        "",
        ["role"],
        role=described("Who speaks.", enum=["system", "user", "assistant", "tool"]),
        content=text_or("What is said.", blocks, *({"type": kind} for kind in content)),
        name=text("Of a tool message: the tool."),
        tool_call_id=text("Of a tool message: the call that it answers."),
        tool_calls=listed("Of an assistant message: the tools that it calls.", call),
    )


def grader_definitions(names_of: Callable[[Form], tuple[str, ...]], aggregators: Sequence[str]) -> dict[str, Schema]:
    """The definitions `Assertion`, `RubricItem` and all that they are made of.

    `names_of` says which names a form goes by; one without any is left out. `aggregators` are the kinds of aggregators.
    """
    forms = [(form, names) for form in FORMS if (names := names_of(form))]
    definitions = {_title(names): _form_schema(form) for form, names in forms}
    definitions |= {name: _mapping_schema(keys, model) for name, (keys, model) in _INNER.items()}
    definitions["RubricItem"] = {"anyOf": [{"type": "string", "minLength": 1}, reference("RubricMapping")]}
    definitions["Aggregator"]["properties"]["type"]["enum"] = spelled(aggregators)
    types = {_title(names): spelled(names) for _, names in forms}
    every = {"description": BASE_KEYS["type"].says, "enum": [name for names in types.values() for name in names]}
    of_types = [
        {"if": {"properties": {"type": {"enum": names}}, "required": ["type"]}, "then": reference(title)}
        for title, names in types.items()
    ]
    grader = {"type": "object", "required": ["type"], "properties": {"type": every}, "allOf": of_types}
    return definitions | {"Grader": grader, "Assertion": _ASSERTION}


def spelled(names: Collection[str]) -> list[str]:
    """Names in snake_case and in kebab-case."""
    return list(dict.fromkeys(spelling for name in names for spelling in (name, name.replace("_", "-"))))


def _title(names: Collection[str]) -> str:
    return "".join(part.capitalize() for part in next(iter(names)).split("_"))


_INCLUDE: Final[Schema] = {
    "include": {"type": "string", "minLength": 1, "description": "A template of assertions: name or path."}
}
_ASSERTION: Final[Schema] = {
    "description": "A grader; a text is an item of a rubric.",
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "if": {"required": ["include"]},
            "then": {"properties": _INCLUDE, "additionalProperties": False},
            "else": reference("Grader"),
        },
    ],
}


def _form_schema(form: Form) -> Schema:
    keys = {**BASE_KEYS, **({} if form.further else DESCRIPTION), **form.keys}
    if "config" not in keys:
        keys["config"] = Key((Kind.MAPPING,), says="Options, as if they stood beside it.")
    schema = _mapping_schema(keys, form.model)
    schema["properties"]["type"] = {"description": BASE_KEYS["type"].says}
    if form.further:
        schema["additionalProperties"] = True
    return {**({"description": form.model.__doc__} if form.model.__doc__ else {}), **schema}


def _mapping_schema(keys: Keys, model: type[BaseModel]) -> Schema:
    whole = model.model_json_schema(mode="validation")
    # A model that holds itself stands among its definitions.
    fields = whole.get("$defs", {}).get(model.__name__, whole)["properties"]
    keys = {name: key for name, key in keys.items() if not key.instead}
    properties = {
        spelling: _key_schema(spelling, key, fields.get(name, {}))
        for name, key in keys.items()
        for spelling in (name, *key.spellings)
    }
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "patternProperties": {_other_cases(name): properties[name] for name in properties if "_" in name},
        "additionalProperties": False,
    }
    required = [name for name, key in keys.items() if key.needed and not key.spellings]
    if required:
        schema["required"] = required
    spelled = [(name, *key.spellings) for name, key in keys.items() if key.needed and key.spellings]
    if spelled:
        schema["allOf"] = [{"anyOf": [{"required": [name]} for name in names]} for names in spelled]
    return schema


def _other_cases(name: str) -> str:
    """A pattern of a key in camelCase and kebab-case, which editors need not offer."""
    head, *rest = name.split("_")
    return f"^({head + ''.join(part.capitalize() for part in rest)}|{name.replace('_', '-')})$"


def _key_schema(name: str, key: Key, field: Schema) -> Schema:
    if name == "aggregator":
        return {"description": key.says, **reference("Aggregator")}
    types = [JSON_TYPES[kind] for kind in key.kinds]
    schema: Schema = {"type": types[0] if len(types) == 1 else types} if types else {}
    if says := field.get("description") or key.says:
        schema["description"] = says
    if len(types) == 1:
        # What the model says of a value beside its type.
        options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
        source = {**field, **options[0]} if len(options) == 1 else field
        schema |= {key: source[key] for key in _CONSTRAINTS if key in source}
    if Kind.LIST in key.kinds:
        schema |= _items(name, key)
    if name == "score_ranges":
        schema |= {"items": reference("ScoreRange"), "additionalProperties": {"type": "string", "minLength": 1}}
    return schema


def _items(name: str, key: Key) -> Schema:
    if name in _LISTS:
        return {"items": reference(_LISTS[name])}
    if name in {"criteria", "value"} and not key.items:
        return {"items": reference("RubricItem")}
    return {"items": {"type": [JSON_TYPES[kind] for kind in key.items]}} if key.items else {}
