"""Graders of the final answer: its text, its JSON, its fields, and expressions of it."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from passgate.tasks.formats.evals.map.forms import LIST, MAPPING, NUMBER, TEXT, TRUTH, Form, Options, build, read_items
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.documents import FILE_SCHEME
from passgate.tasks.formats.evals.read.node import Key, Keys, Node, Parts, take_apart
from passgate.tasks.formats.findings import check_json_schema
from passgate.tasks.formats.schema_check import wrong_kind
from passgate.tasks.model.assertions import FieldCheck
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


def _regex(parts: Parts, sources: Sources) -> Options:
    value, flags = parts.get("value"), parts.value("flags", "")
    if value is not None and isinstance(value.value, str) and isinstance(flags, str):
        problem = regex_problem(value.value, flags)
        if problem:
            sources.refuse(value, problem)
    return parts.only("value", "flags")


def _is_json(parts: Parts, sources: Sources) -> Options:
    value = parts.get("value")
    if value is not None and isinstance(value.value, str):
        value = _json_file(value, sources)
    if value is None:
        return {}
    if isinstance(value.value, dict):
        for path, message in check_json_schema((), value.value):
            sources.complaints.problems.append(value.places.problem((*value.path, *path), message))
    return {"value": value}


def _json_file(node: Node, sources: Sources) -> Node | None:
    """The JSON Schema of a file."""
    text = _file_text(node, node.value, sources)
    if text is None:
        return None
    try:
        schema = parse_json(text)
    except ValueError as error:
        sources.refuse(node, f"{node.value!r} is not JSON: {error}")
        return None
    read = node.with_value(schema)
    return None if sources.refuses_kind(read, MAPPING, f"{node.value!r}: ") else read


def _file_text(node: Node, address: str, sources: Sources) -> str | None:
    return sources.text(node, address.removeprefix(FILE_SCHEME), called=node.value)[1]


def _script(body_of_file: Callable[[str, str], str | None], parts: Parts, sources: Sources) -> Options:
    value = parts.get("value")
    options = parts.only("value", "threshold")
    if value is not None:
        options["cwd"] = value.with_value(sources.ground.relative(value.folder))
        if isinstance(value.value, str) and value.value.startswith(FILE_SCHEME):
            options["value"] = _script_file(value, sources, body_of_file)
    return options


def _script_file(node: Node, sources: Sources, body_of_file: Callable[[str, str], str | None]) -> Node:
    """The text of `file://PATH` or `file://PATH:FUNCTION` as the body of a function; as it is without it."""
    name, _, function = node.value.removeprefix(FILE_SCHEME).partition(":")
    text = _file_text(node, name, sources)
    body = body_of_file(text, function) if text is not None else None
    if text is not None and body is None:
        sources.cannot_run(node, f"{name!r} is not a script that passgate can call")
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


def _fields(parts: Parts, sources: Sources) -> Options:
    fields = read_items(parts, "fields", lambda item: _field(item, sources))
    return {**parts.only("aggregation"), **fields}


def _field(item: Node, sources: Sources) -> FieldCheck | None:
    if wrong_kind(item.value, MAPPING):
        return None
    parts = take_apart(item, FIELD_KEYS, sources.complaints)
    return build(FieldCheck, parts.values, item, sources) if parts.sound else None


_ONE = Key(TEXT, needed=True, says="The text.")
_MANY = Key(LIST, items=TEXT, needed=True, says="The texts.")
_VALUE_OR_FILE: dict[str, Any] = {"says": "Or `file://` and the path of a file that holds it."}
_SCRIPT_KEYS: Keys = {"value": Key(TEXT, needed=True, **_VALUE_OR_FILE), "threshold": Key(NUMBER)}

ANSWER_FORMS = (
    Form(("contains",), {"value": _ONE}, agentevals=("contains",)),
    *(Form((name,), {"value": _ONE}) for name in ("icontains", "starts_with", "ends_with")),
    *(Form((name,), {"value": _MANY}) for name in ("contains_any", "contains_all", "icontains_any", "icontains_all")),
    Form(
        ("equals",),
        {"value": Key(needed=True, null=True, says="The answer; a value that is no text is compared as JSON.")},
        agentevals=("equals",),
    ),
    Form(
        ("regex",),
        {
            "value": Key(TEXT, needed=True, says="The pattern, as JavaScript knows them."),
            "flags": Key(TEXT, says="As in `i`."),
        },
        _regex,
        agentevals=("regex",),
    ),
    Form(("is_json",), {"value": Key((*MAPPING, *TEXT), **_VALUE_OR_FILE)}, _is_json, agentevals=("is_json",)),
    Form(
        ("field_accuracy",),
        {
            "fields": Key(LIST, items=MAPPING, needed=True, says="What is compared."),
            **{name: Key(spellings=FIELD_KEYS[name].spellings, instead=_OF_A_FIELD) for name in ("match", "tolerance")},
            "aggregation": Key(TEXT, says="How the fields' scores become one."),
        },
        _fields,
        agentevals=("field_accuracy",),
    ),
    *(
        Form((name,), _SCRIPT_KEYS, partial(_script, body), later=(name,))
        for name, body in (("javascript", _javascript_body), ("python", _python_body))
    ),
)
