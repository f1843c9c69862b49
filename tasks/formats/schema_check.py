"""A document against the JSON Schema of a model: one problem per mistake, with the nearest valid name."""

import ast
import difflib
import inspect
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from pydantic import BaseModel
from pydantic import ValidationError as ModelError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import Document, DocumentPath, read_document

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = str | int | float  # defaults of other kinds are left out
_OF_OUR_OWN = "Value error, "  # what pydantic puts before the text of a model's own check
_EMPTY = "must not be empty"
_MISSPELT_FROM = 0.8  # how like a known key, from 0 to 1, an unknown one is that is taken for its misspelling
REMOVED_KEYS: Final[Mapping[str, str]] = {
    "compat": "leave it out; docs/compatibility.md lists where AgentV computes other scores",
    "sequential": "a gate with `regression.mode: evidence` tests a failed task with no more trials than it needs",
}
"""Keys of earlier versions, in files of any kind, and what to do instead."""
_BOUNDS = {"minimum": "at least", "maximum": "at most"}
_BOUNDS |= {"exclusiveMinimum": "more than", "exclusiveMaximum": "less than"}

Model = TypeVar("Model", bound=BaseModel)


_TYPE_NAMES = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
_JSON_TYPES: Mapping[type, str] = {str: "string", list: "array", dict: "object"}


def wrong_type(value: Any, *types: type) -> str | None:
    """Return what to say of a value that is not a text, list or mapping, as wanted; `None` where it is."""
    names = [_TYPE_NAMES[_JSON_TYPES[each]] for each in types]
    return None if isinstance(value, types) else f"expected {' or '.join(names)}, not {shown(value)}"


def shown(value: Any) -> str:
    """Return a value as problems show it: JSON, cut short."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True)
class Difference:
    """One way in which data differ from a schema."""

    path: DocumentPath
    message: str
    is_unknown_key: bool = False
    is_misspelt: bool = False  # whether an unknown key is nearly a known one


@cache
def schema_validator(name: str) -> Draft202012Validator:
    """Return the validator of one of the shipped schemas, as in `task`."""
    text = files("passgate").joinpath("schema", f"{name}.schema.json").read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))


def check_schema(document: Document, validator: Draft202012Validator) -> list[Problem]:
    """Return every way in which the document differs from the schema, each with its place."""
    return list(dict.fromkeys(difference_problem(document, each) for each in differences(document.data, validator)))


def difference_problem(document: Document, difference: Difference) -> Problem:
    """Return a difference as a problem of the document."""
    return document.problem(difference.path, difference.message, at_key=difference.is_unknown_key)


def differences(data: Any, validator: Draft202012Validator) -> list[Difference]:
    """Return every way in which data differ from the schema, in its order."""
    found: dict[Difference, None] = {}
    for error in validator.iter_errors(data):
        found |= dict.fromkeys(_error_differences(error, tuple(error.absolute_path)))
    return list(found)


def validate(model: type[Model], document: Document, validator: Draft202012Validator) -> Model | list[Problem]:
    """Return the document as a model, or everything that is wrong with it."""
    problems = check_schema(document, validator)
    if problems:
        return problems
    try:
        return model.model_validate(document.data)
    except ModelError as error:
        # What the schema does not say: keys that exclude each other, numbers that do not fit into a machine's word.
        return [document.problem(found.path, found.message) for found in model_differences(error)]


def surely_valid(model: type[Model], data: Any) -> Model | None:
    """Return the model of data that its schema surely accepts; `None` where only the schema itself can tell.

    A model reads in microseconds what its schema takes milliseconds for.
    """
    text = json.dumps(data)
    # A model takes `null` for a key that is left out, its schema does not.
    if "null" in text:
        return None
    try:
        # Not strict it takes "1" for a number, and strict of Python's own values it refuses a list for a tuple.
        return model.model_validate_json(text, strict=True)
    except ModelError:
        return None


def model_differences(error: ModelError) -> list[Difference]:
    """Return what a model has against data that its schema has nothing against."""
    empty = {"too_short", "string_too_short"}
    return [
        Difference(each["loc"], _EMPTY if each["type"] in empty else each["msg"].removeprefix(_OF_OUR_OWN))
        for each in error.errors()
    ]


def read_model(
    model: type[Model],
    schema: str,
    file: Path,
    name: str,
    findings: Callable[[Model], Iterable[tuple[DocumentPath, str]]],
    *,
    at_key: bool = False,
) -> Model | list[Problem]:
    """Return the model in a YAML file, or everything that is wrong with it. `name` is what problems call the file.

    `schema` is one of the shipped schemas; `findings` are what it cannot say, told at their keys with `at_key`.
    """
    document = read_document(file, name)
    if document.problems:
        return document.problems
    read = validate(model, document, schema_validator(schema))
    if isinstance(read, list):
        return read
    return [document.problem(path, message, at_key=at_key) for path, message in findings(read)] or read


def nearest(name: object, known: Sequence[str]) -> str:
    """`; did you mean 'x'?` for a misspelt name, else the names there are."""
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(sorted(set(known)))}" if known else ""


def _error_differences(error: ValidationError, path: DocumentPath) -> Iterator[Difference]:
    # What jsonschema types as perhaps unset is always set in an error that it has raised.
    instance, schema, value = cast("tuple[Any, Any, Any]", (error.instance, error.schema, error.validator_value))
    kind = str(error.validator)
    if kind == "additionalProperties":
        known = list(schema.get("properties", {}))
        yield from (_unknown_key((*path, key), known) for key in instance if key not in known)
    elif "propertyNames" in error.relative_schema_path and kind == "enum":
        yield _unknown_key((*path, str(instance)), value)
    elif kind == "required":
        # jsonschema reports one missing key at a time and names it only in its message.
        missing = [key for key in value if key not in instance and error.message.startswith(f"{key!r} is")]
        yield from (Difference(path, f"the key {key!r} is missing") for key in missing)
    elif kind in {"anyOf", "oneOf"}:
        yield from _branch_differences(error, path)
    else:
        yield Difference(path, _message(error, kind, value))


def _unknown_key(path: DocumentPath, known: Sequence[str]) -> Difference:
    if path[-1] in REMOVED_KEYS:
        # Like a misspelt one, it must not be taken for a key of the author's own.
        return Difference(path, f"removed key: {REMOVED_KEYS[str(path[-1])]}", is_unknown_key=True, is_misspelt=True)
    is_misspelt = bool(difflib.get_close_matches(str(path[-1]), known, n=1, cutoff=_MISSPELT_FROM))
    return Difference(path, f"unknown key{nearest(path[-1], known)}", is_unknown_key=True, is_misspelt=is_misspelt)


def _branch_differences(error: ValidationError, path: DocumentPath) -> Iterator[Difference]:
    """Yield, of several allowed forms, the differences from the one that was meant: the one of the right type."""
    branches: dict[int, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(int(inner.schema_path[0]), []).append(inner)
    meant = [inner_errors for inner_errors in branches.values() if not any(map(_is_another_form, inner_errors))]
    if len(meant) > 1 and all(len(errors) == 1 and errors[0].validator == "required" for errors in meant):
        keys = [errors[0].validator_value[0] for errors in meant]  # type: ignore[index]
        yield Difference(path, f"one of these keys is needed: {', '.join(keys)}")
    elif meant:
        # Of several forms of one type the last is the widest.
        for inner in meant[-1]:
            yield from _error_differences(inner, (*path, *inner.relative_path))
    else:
        # What the others would have been: their one value, else their type.
        expected: dict[str, None] = {}
        for errors in branches.values():
            wanted = {each.validator: each.validator_value for each in errors if _is_another_form(each)}
            expected[shown(wanted["const"]) if "const" in wanted else _type_names(wanted["type"])] = None
        yield Difference(path, f"expected {' or '.join(expected)}, not {shown(error.instance)}")


def _is_another_form(error: ValidationError) -> bool:
    """Return whether a value as a whole is not what one of several allowed forms is."""
    return error.validator in {"type", "const"} and not error.relative_path


def _message(error: ValidationError, kind: str, value: Any) -> str:
    found = shown(error.instance)
    if kind == "type":
        return f"expected {_type_names(value)}, not {found}"
    if kind in {"enum", "const"}:
        allowed = [item if isinstance(item, str) else shown(item) for item in (value if kind == "enum" else [value])]
        return f"{found} is not one of the allowed values{nearest(error.instance, allowed)}"
    if kind in {"minItems", "minLength", "minProperties"}:
        return _EMPTY if value == 1 else f"needs at least {value}"
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind]} {value}, not {found}"
    return error.message


def _type_names(types: Any) -> str:
    return " or ".join(str(_TYPE_NAMES.get(name, name)) for name in (types if isinstance(types, list) else [types]))


def input_schema(model: type[BaseModel], name: str, title: str) -> dict[str, Any]:
    """Return the schema of a file that people write: unions are told apart by a key, so that errors can be exact."""
    schema = simplify(json_schema(model))
    definitions = schema.get("$defs", {})
    schema = _tell_apart(schema, definitions)
    schema["$defs"] = {key: _tell_apart(value, definitions) for key, value in definitions.items()}
    return add_head(schema, name, title)


def add_head(schema: dict[str, Any], name: str, title: str) -> dict[str, Any]:
    return {"$schema": DRAFT, "$id": f"urn:passgate:schema:{name}", **schema, "title": title}


def simplify(value: Any) -> Any:
    """Return a schema without generated titles, empty defaults, and `null` as a way of leaving a key out."""
    if isinstance(value, list):
        return [simplify(item) for item in value]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, item in value.items():
        if key in {"properties", "$defs"}:  # in there `title` is a name
            result[key] = {name: simplify(inner) for name, inner in item.items()}
        elif not (key == "title" and isinstance(item, str)) and (key != "default" or isinstance(item, _PLAIN)):
            result[key] = simplify(item)
    if "anyOf" in result:
        result["anyOf"] = options = [option for option in result["anyOf"] if option != {"type": "null"}]
        if len(options) == 1:
            del result["anyOf"]
            return {**options[0], **result}
    return result


def _tell_apart(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_tell_apart(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    result = {key: _tell_apart(item, definitions) for key, item in value.items() if key != "$defs"}
    references = [option.get("$ref") for option in result.get("anyOf", ())]
    wanted: dict[str, Any]
    conditions: list[dict[str, Any]]
    if "discriminator" in result:
        mapping: dict[str, str] = result.pop("discriminator")["mapping"]
        del result["oneOf"]
        references = list(mapping.values())
        wanted = {"required": ["type"], "properties": {"type": {"enum": list(mapping)}}}
        conditions = [{"properties": {"type": {"const": kind}}, "required": ["type"]} for kind in mapping]
    elif len(references) < 2 or not all(references):
        return result
    else:
        # Forms without a type are told apart by the first key that each of them needs.
        del result["anyOf"]
        needed = [{"required": definitions[name.rsplit("/", 1)[-1]]["required"][:1]} for name in references]
        wanted, conditions = {"anyOf": needed}, needed
    branches = [{"if": one, "then": {"$ref": name}} for one, name in zip(conditions, references, strict=True)]
    return {**result, "type": "object", **wanted, "allOf": branches}


def json_schema(model: type[BaseModel], mode: JsonSchemaMode = "validation") -> dict[str, Any]:
    """Return the JSON Schema of a model. A docstring below an attribute is the description of its key.

    pydantic can read these docstrings itself (`use_attribute_docstrings`), but does so when a class is made: every
    command would read the source of every model, and next to none needs a description.
    """
    return model.model_json_schema(mode=mode, schema_generator=_WithDescriptions)


class _WithDescriptions(GenerateJsonSchema):
    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        for name, description in _descriptions(model).items():
            if name in made.get("properties", {}):
                made["properties"][name].setdefault("description", description)
        return made


@cache
def _descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of the fields of a model and of the models that it extends, by the fields' names."""
    found: dict[str, str] = {}
    for base in (base for base in reversed(model.__mro__) if issubclass(base, BaseModel) and base is not BaseModel):
        try:
            definition = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        except OSError:  # made while the program runs, as `create_model` does
            continue
        for field, text in pairwise(getattr(definition, "body", ())):
            match (field, text):
                case (ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said)))):
                    found[name] = inspect.cleandoc(said)
    return {name: text for name, text in found.items() if name in model.model_fields}
