"""Find the published JSON Schemas of passgate's files."""

import json
from importlib.resources import files
from typing import Any, Final

from passgate.tasks.errors import UsageError
from passgate.tasks.formats.schema_check import nearest

_SUFFIX: Final = ".schema.json"


def schema_names() -> tuple[str, ...]:
    """Return the names of all schemas, sorted."""
    folder = files("passgate").joinpath("schema")
    return tuple(sorted(entry.name.removesuffix(_SUFFIX) for entry in folder.iterdir() if entry.name.endswith(_SUFFIX)))


def schema_titles() -> dict[str, str]:
    """Return the title of each schema by its name."""
    return {name: _title(json.loads(schema_text(name))) for name in schema_names()}


def schema_text(name: str) -> str:
    """Return the text of a schema. Raise `UsageError` for an unknown name."""
    names = schema_names()
    if name not in names:
        raise UsageError(f"there is no schema {name!r}{nearest(name, names)}")
    return files("passgate").joinpath("schema", f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def _title(schema: dict[str, Any]) -> str:
    return str(schema.get("description") or schema.get("title") or "").partition("\n")[0]
