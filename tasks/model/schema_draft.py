"""The draft of a JSON Schema: the same keywords ask for different things in each."""

from typing import Any, Final

from jsonschema import (
    Draft3Validator,
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator

_DRAFTS: Final[dict[str, type[Validator]]] = {
    "http://json-schema.org/draft-03/schema": Draft3Validator,
    "http://json-schema.org/draft-04/schema": Draft4Validator,
    "http://json-schema.org/draft-06/schema": Draft6Validator,
    "http://json-schema.org/draft-07/schema": Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": Draft202012Validator,
}


def draft_of(schema: dict[str, Any]) -> type[Validator]:
    """Return the validator of the draft that a schema's `$schema` names, of 2020-12 where it names none.

    Raises `SchemaError` for a draft that is not known: none other says the same of every document.
    """
    if "$schema" not in schema:
        return Draft202012Validator
    named = schema["$schema"]
    draft = _DRAFTS.get(named.rstrip("#")) if isinstance(named, str) else None
    if draft is None:
        raise SchemaError(f"{named!r} names no known draft: known are {', '.join(_DRAFTS)}", path=["$schema"])
    return draft
