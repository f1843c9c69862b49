"""The JSON Schemas of the input files, made from the models: what the loader accepts and editors show.

`make schema` writes them to `schema/`; a test keeps the files and the models the same.
"""

import ast
import inspect
import json
import textwrap
from functools import cache
from itertools import pairwise
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = str | int | float  # defaults of other kinds are left out


def input_schema(model: type[BaseModel], name: str, title: str) -> dict[str, Any]:
    """Return the schema of a file that people write: unions are told apart by a key, so that errors can be exact."""
    schema = simplified(json_schema(model))
    definitions = schema.get("$defs", {})
    schema = _tell_apart(schema, definitions)
    schema["$defs"] = {key: _tell_apart(value, definitions) for key, value in definitions.items()}
    return headed(schema, name, title)


def headed(schema: dict[str, Any], name: str, title: str) -> dict[str, Any]:
    return {"$schema": DRAFT, "$id": f"urn:passgate:schema:{name}", **schema, "title": title}


def simplified(value: Any) -> Any:
    """Return a schema without generated titles, empty defaults, and `null` as a way of leaving a key out."""
    if isinstance(value, list):
        return [simplified(item) for item in value]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, item in value.items():
        if key in {"properties", "$defs"}:  # in there `title` is a name
            result[key] = {name: simplified(inner) for name, inner in item.items()}
        elif not (key == "title" and isinstance(item, str)) and (key != "default" or isinstance(item, _PLAIN)):
            result[key] = simplified(item)
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
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            found |= _attribute_docstrings(base)
    return {name: text for name, text in found.items() if name in model.model_fields}


def _attribute_docstrings(made: type) -> dict[str, str]:
    try:
        source = inspect.getsource(made)
    except OSError:  # made while the program runs, as `create_model` does
        return {}
    definition = ast.parse(textwrap.dedent(source)).body[0]
    return {
        attribute.target.id: inspect.cleandoc(text.value.value)
        for attribute, text in pairwise(getattr(definition, "body", ()))
        if isinstance(attribute, ast.AnnAssign) and isinstance(attribute.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def schemas() -> dict[str, dict[str, Any]]:
    """Return every generated schema by its name, as in `schema/NAME.schema.json`."""
    # Imported here: reading a file needs `input_schema` alone.
    from passgate.tasks.formats.evals.schemas import agentevals_schema, agentv_schema
    from passgate.tasks.model.baseline import Pins
    from passgate.tasks.model.policy import Policy, QuarantineFile
    from passgate.tasks.model.price import PriceTable
    from passgate.tasks.model.sandbox import SandboxFile
    from passgate.tasks.model.task import TaskFile
    from passgate.tasks.model.transcript import Transcript
    from passgate.tasks.model.verdict import Verdict

    return {
        "task": input_schema(TaskFile, "task", "Agent Eval Task"),
        "sandbox": input_schema(SandboxFile, "sandbox", "passgate sandbox"),
        "gates": input_schema(Policy, "gates", "passgate gates"),
        "agents": _agents_schema(),
        "prices": input_schema(PriceTable, "prices", "passgate prices"),
        "baseline": input_schema(Pins, "baseline", "passgate baseline pins"),
        "quarantine": input_schema(QuarantineFile, "quarantine", "passgate quarantine"),
        "verdict": headed(json_schema(Verdict, "serialization"), "verdict", "passgate verdict"),
        # Agents write it and passgate too: what is not known may be left out or `null`.
        "transcript": headed(json_schema(Transcript), "transcript", "passgate transcript"),
        "eval": agentevals_schema(),
        "agentv": agentv_schema(),
    }


def _agents_schema() -> dict[str, Any]:
    """Return the schema of agents.yaml, with the names of the providers."""
    from passgate.tasks.model.agent import AgentsFile
    from passgate.tasks.providers.registry import PROVIDERS

    schema = input_schema(AgentsFile, "agents", "passgate agents")
    upstreams = schema["$defs"]["AgentEntry"]["properties"]["upstreams"]
    upstreams["properties"] = dict.fromkeys(PROVIDERS, upstreams["additionalProperties"])
    upstreams["additionalProperties"] = False
    return schema


def schema_text(schema: dict[str, Any]) -> str:
    """Return a schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    import sys
    from pathlib import Path

    for schema_name, schema_value in schemas().items():
        Path(sys.argv[1], f"{schema_name}.schema.json").write_text(schema_text(schema_value), encoding="utf-8")
