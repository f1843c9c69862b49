"""Descriptions of keys come from the docstrings below the attributes."""

from pydantic import create_model

from passgate.tasks.formats.schema_check import json_schema
from passgate.tasks.model.base import Frozen


class _Part(Frozen):
    size: int
    """In bytes."""


class _Whole(_Part):
    name: str
    """As people say it,

    on two lines.
    """
    part: _Part
    """Where it is."""
    plain: int = 0


def test_a_docstring_below_an_attribute_is_the_description_of_its_key_also_of_a_base_and_beside_a_reference() -> None:
    schema = json_schema(_Whole)
    assert {key: value.get("description") for key, value in schema["properties"].items()} == {
        "size": "In bytes.",
        "name": "As people say it,\n\non two lines.",
        "part": "Where it is.",
        "plain": None,
    }
    assert schema["$defs"]["_Part"]["properties"]["size"]["description"] == "In bytes."


def test_a_model_without_a_source_keeps_the_descriptions_of_its_base() -> None:
    schema = json_schema(create_model("Made", __base__=_Part, more=(int, 0)), "serialization")
    assert schema["properties"]["size"]["description"] == "In bytes."
    assert "description" not in schema["properties"]["more"]
