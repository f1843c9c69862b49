"""The JSON Schemas of the input files, made from the models: what the loader accepts and editors show.

`make schema` writes them to `schema/`; a test keeps the files and the models the same.
"""

import json
from typing import Any

from pydantic import BaseModel

from passgate.tasks.formats.evals.schemas.dialects import DRAFT, agentevals_schema, agentv_schema
from passgate.tasks.model.agent import AgentsFile
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.json_schema import json_schema
from passgate.tasks.model.policy import Policy, QuarantineFile
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.sandbox import SandboxFile
from passgate.tasks.model.task import TaskFile
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.verdict import Verdict

_PLAIN = str | int | float  # defaults of other kinds are left out


def schemas() -> dict[str, dict[str, Any]]:
    """Every generated schema by its name, as in `schema/NAME.schema.json`."""
    return {
        "task": input_schema(TaskFile, "task", "Agent Eval Task"),
        "sandbox": input_schema(SandboxFile, "sandbox", "passgate sandbox"),
        "gates": input_schema(Policy, "gates", "passgate gates"),
        "agents": input_schema(AgentsFile, "agents", "passgate agents"),
        "prices": input_schema(PriceTable, "prices", "passgate prices"),
        "baseline": input_schema(Pins, "baseline", "passgate baseline pins"),
        "quarantine": input_schema(QuarantineFile, "quarantine", "passgate quarantine"),
        "verdict": _headed(json_schema(Verdict, "serialization"), "verdict", "passgate verdict"),
        # Agents write it and passgate too: what is not known may be left out or `null`.
        "transcript": _headed(json_schema(Transcript), "transcript", "passgate transcript"),
        "eval": agentevals_schema(),
        "agentv": agentv_schema(),
    }


def schema_text(schema: dict[str, Any]) -> str:
    """A schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def input_schema(model: type[BaseModel], name: str, title: str) -> dict[str, Any]:
    """The schema of a file that people write: unions are told apart by a key, so that errors can be exact."""
    schema = _simplified(json_schema(model))
    definitions = schema.get("$defs", {})
    schema = _told_apart(schema, definitions)
    schema["$defs"] = {key: _told_apart(value, definitions) for key, value in definitions.items()}
    return _headed(schema, name, title)


def _headed(schema: dict[str, Any], name: str, title: str) -> dict[str, Any]:
    return {"$schema": DRAFT, "$id": f"urn:passgate:schema:{name}", **schema, "title": title}


def _simplified(value: Any) -> Any:
    """Without generated titles and empty defaults, and without `null` as a way of leaving a key out."""
    if isinstance(value, list):
        return [_simplified(item) for item in value]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, item in value.items():
        if key in {"properties", "$defs"}:  # in there `title` is a name
            result[key] = {name: _simplified(inner) for name, inner in item.items()}
        elif not (key == "title" and isinstance(item, str)) and (key != "default" or isinstance(item, _PLAIN)):
            result[key] = _simplified(item)
    if "anyOf" in result:
        result["anyOf"] = options = [option for option in result["anyOf"] if option != {"type": "null"}]
        if len(options) == 1:
            del result["anyOf"]
            return {**options[0], **result}
    return result


def _told_apart(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_told_apart(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    result = {key: _told_apart(item, definitions) for key, item in value.items() if key != "$defs"}
    wanted: dict[str, Any]
    conditions: list[tuple[dict[str, Any], str]]
    if "discriminator" in result:
        mapping: dict[str, str] = result.pop("discriminator")["mapping"]
        del result["oneOf"]
        wanted = {"required": ["type"], "properties": {"type": {"enum": list(mapping)}}}
        conditions = [
            ({"properties": {"type": {"const": kind}}, "required": ["type"]}, mapping[kind]) for kind in mapping
        ]
    else:
        references = [option.get("$ref") for option in result.get("anyOf", ())]
        if len(references) < 2 or not all(references):
            return result
        # Forms without a type are told apart by the first key that each of them needs.
        del result["anyOf"]
        keys = [definitions[reference.rsplit("/", 1)[-1]]["required"][0] for reference in references]
        wanted = {"anyOf": [{"required": [key]} for key in keys]}
        conditions = [({"required": [key]}, reference) for key, reference in zip(keys, references, strict=True)]
    branches = [{"if": condition, "then": {"$ref": reference}} for condition, reference in conditions]
    return {**result, "type": "object", **wanted, "allOf": branches}


if __name__ == "__main__":
    import sys
    from pathlib import Path

    for schema_name, schema_value in schemas().items():
        Path(sys.argv[1], f"{schema_name}.schema.json").write_text(schema_text(schema_value), encoding="utf-8")
