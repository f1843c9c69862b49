"""Graders of the final answer: its text, its JSON, its fields, and expressions of it."""

import re
from collections.abc import Callable
from typing import Any

from passgate.tasks.formats.evals.map.built import build
from passgate.tasks.formats.evals.map.forms import LIST, MAPPING, NUMBER, TEXT, TRUTH, Draft, Drafting, Form, plain
from passgate.tasks.formats.evals.map.prompt_text import read_file_text
from passgate.tasks.formats.evals.map.reading import Reading
from passgate.tasks.formats.evals.read.documents import FILE_SCHEME
from passgate.tasks.formats.evals.read.node import Key, Keys, Node, Parts, take_apart
from passgate.tasks.formats.evals.read.paths import find_path
from passgate.tasks.formats.findings import check_json_schema
from passgate.tasks.formats.schema_check import Kind, wrong_kind
from passgate.tasks.model.assertions import (
    Equals,
    FieldAccuracy,
    FieldCheck,
    IsJson,
    Regex,
    ScriptAssertion,
    TextAssertion,
)
from passgate.tasks.model.javascript_regex import regex_problem
from passgate.tasks.model.json_values import parse_json

_OF_A_FIELD = "is said of each field: write fields: [{path: PATH, match: numeric_tolerance, tolerance: 0.01}]"
FIELD_KEYS: Keys = {
    "path": Key(TEXT, needed=True),
    "match": Key(TEXT, spellings=("match_type",), says="How it is compared."),
    "required": Key(TRUTH),
    "weight": Key(NUMBER, says="Its part in the score."),
    "tolerance": Key(NUMBER, spellings=("numeric_tolerance",), says="For `numeric_tolerance`."),
    "relative": Key(TRUTH),
    "formats": Key(LIST, items=TEXT),
}


def _text(name: str, key: Key, agentevals: tuple[str, ...] = ()) -> Form:
    return Form((name,), TextAssertion, {"value": key}, plain(TextAssertion, name), agentevals)


def _regex(parts: Parts, reading: Reading) -> Draft:
    value, flags = parts.get("value"), parts.value("flags", "")
    if value is not None and isinstance(value.value, str) and isinstance(flags, str):
        problem = regex_problem(value.value, flags)
        if problem:
            reading.refuse(value, problem)
    return Draft(Regex, "regex", parts.only("value", "flags"))


def _is_json(parts: Parts, reading: Reading) -> Draft:
    value = parts.get("value")
    if value is not None and isinstance(value.value, str):
        value = _json_file(value, reading)
    if value is None:
        return Draft(IsJson, "is_json", {})
    if isinstance(value.value, dict):
        for path, message in check_json_schema((), value.value):
            reading.complaints.problems.append(value.places.problem((*value.path, *path), message))
    return Draft(IsJson, "is_json", {"value": value})


def _json_file(node: Node, reading: Reading) -> Node | None:
    """The JSON Schema of a file."""
    file = find_path(node, node.value.removeprefix(FILE_SCHEME), reading.ground, reading.complaints)
    text = read_file_text(file, node, reading) if file is not None else None
    if text is None:
        return None
    try:
        schema = parse_json(text)
    except ValueError as error:
        reading.refuse(node, f"{node.value!r} is not JSON: {error}")
        return None
    message = wrong_kind(schema, MAPPING)
    if message is not None:
        reading.refuse(node, f"{node.value!r}: {message}")
        return None
    return node.with_value(schema)


def _script(type_name: str, body_of_file: Callable[[str, str], str | None]) -> Drafting:
    def draft(parts: Parts, reading: Reading) -> Draft:
        value = parts.get("value")
        options = parts.only("value", "threshold")
        if value is not None:
            options["cwd"] = value.with_value(reading.ground.relative(value.folder))
            if isinstance(value.value, str) and value.value.startswith(FILE_SCHEME):
                options["value"] = _script_file(value, reading, body_of_file)
        return Draft(ScriptAssertion, type_name, options)

    return draft


def _script_file(node: Node, reading: Reading, body_of_file: Callable[[str, str], str | None]) -> Node:
    """The text of `file://PATH` or `file://PATH:FUNCTION` as the body of a function; as it is without it."""
    name, _, function = node.value.removeprefix(FILE_SCHEME).partition(":")
    file = find_path(node, name, reading.ground, reading.complaints)
    text = read_file_text(file, node, reading) if file is not None else None
    body = body_of_file(text, function) if text is not None else None
    if text is not None and body is None:
        reading.cannot_run(node, f"{name!r} is not a script that passgate can call")
    return node if body is None else node.with_value(body)


def _python_body(text: str, function: str) -> str | None:
    name = function or "get_assert"
    if re.search(rf"^(async\s+)?def\s+{re.escape(name)}\b", text, re.MULTILINE):
        return f"{text}\nreturn {name}(output, context)\n"
    return None if function else text


def _javascript_body(text: str, function: str) -> str | None:
    if re.search(r"^export\b", text, re.MULTILINE):
        return None
    if "module.exports" in text:
        member = f".{function}" if function else ""
        return (
            f"const module = {{ exports: {{}} }};\nconst exports = module.exports;\n{text}\n"
            f"return module.exports{member}(output, context);\n"
        )
    return None if function else text


def _fields(parts: Parts, reading: Reading) -> Draft:
    fields = parts.get("fields")
    options = parts.only("aggregation")
    if fields is not None and isinstance(fields.value, list):
        read = [_field(item, reading) for item in fields.items()]
        if None not in read:
            options["fields"] = fields.with_value(read)
    return Draft(FieldAccuracy, "field_accuracy", options)


def _field(item: Node, reading: Reading) -> FieldCheck | None:
    if wrong_kind(item.value, (Kind.MAPPING,)):
        return None
    parts = take_apart(item, FIELD_KEYS, reading.complaints)
    return build(FieldCheck, parts.values, item, reading.complaints) if parts.sound else None


_ONE = Key(TEXT, needed=True, says="The text.")
_MANY = Key(LIST, items=TEXT, needed=True, says="The texts.")
_VALUE_OR_FILE: dict[str, Any] = {"says": "Or `file://` and the path of a file that holds it."}

ANSWER_FORMS = (
    _text("contains", _ONE, ("contains",)),
    _text("icontains", _ONE),
    _text("starts_with", _ONE),
    _text("ends_with", _ONE),
    _text("contains_any", _MANY),
    _text("contains_all", _MANY),
    _text("icontains_any", _MANY),
    _text("icontains_all", _MANY),
    Form(
        ("equals",),
        Equals,
        {"value": Key(needed=True, null=True, says="The answer; a value that is no text is compared as JSON.")},
        plain(Equals, "equals"),
        ("equals",),
    ),
    Form(
        ("regex",),
        Regex,
        {
            "value": Key(TEXT, needed=True, says="The pattern, as JavaScript knows them."),
            "flags": Key(TEXT, says="As in `i`."),
        },
        _regex,
        ("regex",),
    ),
    Form(("is_json",), IsJson, {"value": Key((*MAPPING, *TEXT), **_VALUE_OR_FILE)}, _is_json, ("is_json",)),
    Form(
        ("field_accuracy",),
        FieldAccuracy,
        {
            "fields": Key(LIST, items=MAPPING, needed=True, says="What is compared."),
            **{name: Key(spellings=FIELD_KEYS[name].spellings, instead=_OF_A_FIELD) for name in ("match", "tolerance")},
            "aggregation": Key(TEXT, says="How the fields' scores become one."),
        },
        _fields,
        ("field_accuracy",),
    ),
    *(
        Form(
            (name,),
            ScriptAssertion,
            {"value": Key(TEXT, needed=True, **_VALUE_OR_FILE), "threshold": Key(NUMBER)},
            _script(name, body),
            later=(name,),
        )
        for name, body in (("javascript", _javascript_body), ("python", _python_body))
    ),
)
