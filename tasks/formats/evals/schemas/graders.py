"""The definitions of graders in the JSON Schemas of eval files, from the tables that graders are read with."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from pydantic import BaseModel

from passgate.tasks.formats.evals.computed_forms import EXPECTED_KEYS, FIELD_KEYS
from passgate.tasks.formats.evals.forms import Form
from passgate.tasks.formats.evals.graders import AGGREGATOR_KEYS, BASE_KEYS, DESCRIPTION, FORMS
from passgate.tasks.formats.evals.judges import ITEM_KEYS, RANGE_KEYS
from passgate.tasks.formats.evals.node import Key, Keys
from passgate.tasks.formats.schema_check import JSON_TYPES, Kind
from passgate.tasks.model.assertions import Criterion, ExpectedCall, FieldCheck, ScoreRange
from passgate.tasks.model.graders import Aggregator
from passgate.tasks.model.json_schema import json_schema

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


def grader_definitions(names_of: Callable[[Form], tuple[str, ...]], aggregators: Sequence[str]) -> dict[str, Schema]:
    """`Assertion` and all that it is made of. `names_of`: the names that a form goes by, none to leave it out."""
    forms: dict[str, tuple[Form, list[str]]] = {}
    for form in FORMS:
        if names := names_of(form):
            forms["".join(part.capitalize() for part in names[0].split("_"))] = form, spelled(names)
    definitions = {title: _form_schema(form) for title, (form, _) in forms.items()}
    definitions |= {name: _mapping_schema(keys, model) for name, (keys, model) in _INNER.items()}
    definitions["RubricItem"] = {"anyOf": [{"type": "string", "minLength": 1}, reference("RubricMapping")]}
    definitions["Aggregator"]["properties"]["type"]["enum"] = spelled(aggregators)
    every = {"description": BASE_KEYS["type"].says, "enum": [name for _, names in forms.values() for name in names]}
    of_types = [
        {"if": {"properties": {"type": {"enum": names}}, "required": ["type"]}, "then": reference(title)}
        for title, (_, names) in forms.items()
    ]
    grader = {"type": "object", "required": ["type"], "properties": {"type": every}, "allOf": of_types}
    return definitions | {"Grader": grader, "Assertion": _ASSERTION}


def spelled(names: Collection[str]) -> list[str]:
    """Names in snake_case and in kebab-case."""
    return list(dict.fromkeys(spelling for name in names for spelling in (name, name.replace("_", "-"))))


_INCLUDE: Final = {"type": "string", "minLength": 1, "description": "A template of assertions: name or path."}
_ASSERTION: Final[Schema] = {
    "description": "A grader; a text is an item of a rubric.",
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "if": {"required": ["include"]},
            "then": {"properties": {"include": _INCLUDE}, "additionalProperties": False},
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
    whole = json_schema(model)
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
    of_rubric = "RubricItem" if name in {"criteria", "value"} and not key.items else None
    if Kind.LIST in key.kinds and (definition := _LISTS.get(name, of_rubric)):
        schema["items"] = reference(definition)
    elif Kind.LIST in key.kinds and key.items:
        schema["items"] = {"type": [JSON_TYPES[kind] for kind in key.items]}
    if name == "score_ranges":
        schema |= {"items": reference("ScoreRange"), "additionalProperties": {"type": "string", "minLength": 1}}
    return schema
