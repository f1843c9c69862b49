"""JSON values: parse them, find one inside another, compare them, validate them, compute their digests."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

MISSING: Final = object()  # What `at_path` answers when the path is not there; `None` is a value


def parse_json(text: str, parse_int: Callable[[str], int] = int, parse_float: Callable[[str], float] = float) -> Any:
    """Parse the JSON document in a text.

    Raises `ValueError` when there is none, when it is nested too deep, or has NaN or a duplicate key.
    """
    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant,
            object_pairs_hook=_mapping,
            parse_int=parse_int,
            parse_float=parse_float,
        )
    except RecursionError:
        raise ValueError("nested too deep") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a finite number")


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {next(name for name in names if names.count(name) > 1)!r}")
    return mapping


def at_path(document: Any, path: str) -> Any:
    """Return the value at keys and list indices joined with dots, or the document for an empty path."""
    for part in path.split(".") if path else ():
        if isinstance(document, Mapping):
            document = document.get(part, MISSING)
            continue
        # `isdecimal` alone takes the digits of other scripts, and `int` refuses texts of thousands of digits.
        is_index = isinstance(document, list | tuple) and part.isascii() and part.isdecimal() and len(part) < 10
        document = document[int(part)] if is_index and int(part) < len(document) else MISSING
    return document


def leaves(value: Any) -> Iterator[Any]:
    """Yield everything in a value that is neither a list nor an object, names of an object included."""
    # A list of what waits, not a recursion: an agent may nest its arguments deeper than Python's stack.
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            waiting.extend([*item.keys(), *item.values()])
        elif isinstance(item, list | tuple):
            waiting.extend(item)
        else:
            yield item


def strictly_equal(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal: 1 is 1.0, but `True` is not 1, and a list may be a tuple."""
    # To Python `True` is a number, and equal to 1.
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(strictly_equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(strictly_equal, left, right))
    return type(left) is type(right) and bool(left == right)


def json_digest(value: Any) -> str:
    """SHA-256 of a JSON value in its canonical form, as hex."""
    # What an agent wrote may hold half of a surrogate pair, which plain UTF-8 refuses.
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def trials_digest(trials: Iterable[Mapping[str, Any]]) -> str:
    """Return the digest of trials in any order, each in the form of its journal line, with its transcript's digest."""
    return json_digest(sorted(trials, key=lambda trial: (str(trial["task_id"]), int(trial["trial"]))))


def schema_validator(schema: dict[str, Any]) -> "type[Validator]":
    """Return the validator of the draft that a schema's `$schema` names, of 2020-12 where it names none. Raises
    `SchemaError` for an unknown draft: the same keywords ask for different things in each.
    """
    # Every command imports this module, and few validate anything.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    draft = schema.get("$schema", Draft202012Validator.META_SCHEMA["$id"])
    try:
        validator = validator_for({"$schema": draft}, default=None)  # type: ignore[arg-type]
    except (ValueError, TypeError, AttributeError):  # not a URL, or not even a text
        validator = None
    if validator is None:
        raise SchemaError(f"{draft!r} names no known draft", path=["$schema"])
    return validator


def schema_patterns(schema: Any) -> Iterator[str]:
    """Yield the regular expressions of a JSON Schema."""
    if isinstance(schema, dict):
        pattern, of_names = schema.get("pattern"), schema.get("patternProperties")
        for text in (pattern, *(of_names if isinstance(of_names, dict) else ())):
            # Examples and defaults may have a key of this name too, with any text.
            if isinstance(text, str) and is_regular_expression(text):
                yield text
    held = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for one in held:
        yield from schema_patterns(one)


def is_regular_expression(text: str) -> bool:
    """Return whether Python can compile a text."""
    try:
        re.compile(text)
    except re.error:
        return False
    return True
