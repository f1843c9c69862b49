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
    text = sources.text(node, node.value.removeprefix(FILE_SCHEME), called=node.value)[1]
    if text is None:
        return None
    try:
        read = node.with_value(parse_json(text))
    except ValueError as error:
        sources.refuse(node, f"{node.value!r} is not JSON: {error}")
        return None
    return None if sources.refuses_kind(read, MAPPING, f"{node.value!r}: ") else read


def _script(body_of_file: Callable[[str, str], str | None], parts: Parts, sources: Sources) -> Options:
    value = parts.get("value")
    options = parts.only("value", "threshold")
    if value is None:
        return options
    options["cwd"] = value.with_value(sources.ground.relative(value.folder))
    if isinstance(value.value, str) and value.value.startswith(FILE_SCHEME):
        # `file://PATH` or `file://PATH:FUNCTION`
        name, _, function = value.value.removeprefix(FILE_SCHEME).partition(":")
        text = sources.text(value, name, called=value.value)[1]
        body = body_of_file(text, function) if text is not None else None
        if body is not None:
            options["value"] = value.with_value(body)
        elif text is not None:
            sources.cannot_run(value, f"{name!r} is not a script that passgate can call")
    return options


def _python_body(text: str, function: str) -> str | None:
    """The text of a script as the body of a function; `None` where the script has no function of the name."""
    name = function or "get_assert"
    if re.search(rf"^(async\s+)?def\s+{re.escape(name)}\b", text, re.MULTILINE):
        return f"{text}\nreturn {name}(output, context)\n"
    return None if function else text


def _javascript_body(text: str, function: str) -> str | None:
    if re.search(r"^export\b", text, re.MULTILINE):  # not allowed in the body of a function
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
_TEXT_OF_JSON = "The answer; a value that is no text is compared as JSON."
_VALUE_OR_FILE: dict[str, Any] = {"says": "Or `file://` and the path of a file that holds it."}
_SCRIPT_KEYS: Keys = {"value": Key(TEXT, needed=True, **_VALUE_OR_FILE), "threshold": Key(NUMBER)}
_REGEX_KEYS: Keys = {
    "value": Key(TEXT, needed=True, says="The pattern, as JavaScript knows them."),
    "flags": Key(TEXT, says="As in `i`."),
}
_ACCURACY_KEYS: Keys = {
    "fields": Key(LIST, items=MAPPING, needed=True, says="What is compared."),
    **{name: Key(spellings=FIELD_KEYS[name].spellings, instead=_OF_A_FIELD) for name in ("match", "tolerance")},
    "aggregation": Key(TEXT, says="How the fields' scores become one."),
}

ANSWER_FORMS = (
    Form(("contains",), {"value": _ONE}, agentevals=("contains",)),
    *(Form((name,), {"value": _ONE}) for name in ("icontains", "starts_with", "ends_with")),
    *(Form((name,), {"value": _MANY}) for name in ("contains_any", "contains_all", "icontains_any", "icontains_all")),
    Form(("equals",), {"value": Key(needed=True, null=True, says=_TEXT_OF_JSON)}, agentevals=("equals",)),
    Form(("regex",), _REGEX_KEYS, _regex, agentevals=("regex",)),
    Form(("is_json",), {"value": Key((*MAPPING, *TEXT), **_VALUE_OR_FILE)}, _is_json, agentevals=("is_json",)),
    Form(("field_accuracy",), _ACCURACY_KEYS, _fields, agentevals=("field_accuracy",)),
    *(
        Form((name,), _SCRIPT_KEYS, partial(_script, body), later=(name,))
        for name, body in (("javascript", _javascript_body), ("python", _python_body))
    ),
)
