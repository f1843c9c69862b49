"""JSON Schemas of models, with the docstrings of attributes as descriptions."""

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema


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
