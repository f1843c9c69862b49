"""The JSON Schema of graders in eval files, made from the tables that they are read with."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from passgate.tasks.formats.evals.json_kinds import JSON_TYPES, Kind
from passgate.tasks.formats.evals.map.answer_forms import FIELD_KEYS
from passgate.tasks.formats.evals.map.composite_form import AGGREGATOR_KEYS
from passgate.tasks.formats.evals.map.forms import Form
from passgate.tasks.formats.evals.map.graders import BASE_KEYS, DESCRIPTION, FORMS
from passgate.tasks.formats.evals.map.rubric_items import ITEM_KEYS, RANGE_KEYS
from passgate.tasks.formats.evals.map.trajectory_forms import EXPECTED_KEYS
from passgate.tasks.formats.evals.parts import Key, Keys
from passgate.tasks.model.assertions import Criterion, ExpectedCall, FieldCheck, ScoreRange
from passgate.tasks.model.graders import Aggregator

Schema = dict[str, Any]

_CONSTRAINTS = ("minimum", "maximum", "exclusiveMinimum", "enum", "const", "minItems", "minLength", "pattern")
_LISTS = {
    "assertions": "Assertion",
    "evaluators": "Assertion",
    "assert": "Assertion",
    "fields": "FieldCheck",
    "expected": "ExpectedCall",
    "rubrics": "RubricItem",
    "items": "RubricItem",
}
"""What the items of a list are, by the key of the list."""
_INNER: dict[str, tuple[Keys, type[BaseModel]]] = {
    "FieldCheck": (FIELD_KEYS, FieldCheck),
    "ExpectedCall": (EXPECTED_KEYS, ExpectedCall),
    "RubricMapping": (ITEM_KEYS, Criterion),
    "ScoreRange": (RANGE_KEYS, ScoreRange),
    "Aggregator": (AGGREGATOR_KEYS, Aggregator),
}


def grader_definitions(names_of: Callable[[Form], tuple[str, ...]], aggregators: Sequence[str]) -> dict[str, Schema]:
    """The definitions `Assertion`, `RubricItem` and all that they are made of.

    `names_of` says which names a form goes by; one without any is left out. `aggregators` are the kinds of aggregators.
    """
    forms = [(form, names) for form in FORMS if (names := names_of(form))]
    definitions = {_title(names): _form_schema(form) for form, names in forms}
    definitions |= {name: _mapping_schema(keys, model) for name, (keys, model) in _INNER.items()}
    definitions["RubricItem"] = {"anyOf": [{"type": "string", "minLength": 1}, reference("RubricMapping")]}
    definitions["Aggregator"]["properties"]["type"]["enum"] = spelled(aggregators)
    definitions["Grader"] = _by_type({_title(names): spelled(names) for _, names in forms})
    definitions["Assertion"] = _assertion()
    return definitions


def reference(name: str) -> Schema:
    """A reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def spelled(names: Collection[str]) -> list[str]:
    """Names in snake_case and in kebab-case."""
    return list(dict.fromkeys(spelling for name in names for spelling in (name, name.replace("_", "-"))))


def _title(names: Collection[str]) -> str:
    return "".join(part.capitalize() for part in next(iter(names)).split("_"))


def _by_type(types: Mapping[str, list[str]]) -> Schema:
    return {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {
                "description": BASE_KEYS["type"].says,
                "enum": [name for names in types.values() for name in names],
            }
        },
        "allOf": [
            {"if": {"properties": {"type": {"enum": names}}, "required": ["type"]}, "then": reference(title)}
            for title, names in types.items()
        ],
    }


def _assertion() -> Schema:
    include = {"include": {"type": "string", "minLength": 1, "description": "A template of assertions: name or path."}}
    return {
        "description": "A grader; a text is an item of a rubric.",
        "anyOf": [
            {"type": "string", "minLength": 1},
            {
                "type": "object",
                "if": {"required": ["include"]},
                "then": {"properties": include, "additionalProperties": False},
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
    fields = _fields(model)
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


def _fields(model: type[BaseModel]) -> dict[str, Schema]:
    schema = model.model_json_schema(mode="validation")
    # A model that holds itself stands among its definitions.
    fields: dict[str, Schema] = schema.get("$defs", {}).get(model.__name__, schema)["properties"]
    return fields


def _key_schema(name: str, key: Key, field: Schema) -> Schema:
    if name == "aggregator":
        return {"description": key.says, **reference("Aggregator")}
    types = [JSON_TYPES[kind] for kind in key.kinds]
    schema: Schema = {"type": types[0] if len(types) == 1 else types} if types else {}
    says = field.get("description") or key.says
    if says:
        schema["description"] = says
    schema |= _constraints(field) if len(types) == 1 else {}
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


def _constraints(field: Schema) -> Schema:
    """What the model says of a value beside its type."""
    options = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    source = {**field, **options[0]} if len(options) == 1 else field
    return {key: source[key] for key in _CONSTRAINTS if key in source}
