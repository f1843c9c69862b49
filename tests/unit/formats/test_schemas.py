"""The schemas on disk are those of the models."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from passgate.tasks.formats.schemas import schema_text, schemas
from passgate.tasks.model.trial import METRIC_GROUPS, MeanMetrics, TrialMetrics, TrialStatus
from tests.builders import REPOSITORY, task_document

FOLDER = REPOSITORY / "schema"
NAMES = (
    *("task", "sandbox", "gates", "agents", "prices", "baseline", "quarantine", "verdict", "transcript"),
    *("eval", "agentv"),
)


def stored(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))


def accepts(name: str, document: Any) -> bool:
    return bool(Draft202012Validator(stored(name)).is_valid(document))


def test_every_schema_is_known_and_its_file_is_what_the_models_say() -> None:
    of_models = schemas()
    others = (f"{name}.schema.json" for name in ("trial", "summary", "four_suite"))
    texts = {f"{name}.schema.json": schema_text(schema) for name, schema in of_models.items()}
    assert set(of_models) == set(NAMES)
    assert {file.name for file in FOLDER.iterdir()} == {*texts, *others}
    wrong = [name for name, text in texts.items() if (FOLDER / name).read_text(encoding="utf-8") != text]
    assert wrong == [], "make schema"


def references(value: Any) -> set[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = {value["$ref"]} if isinstance(value, dict) and isinstance(value.get("$ref"), str) else set()
    return own.union(*map(references, inner))


@pytest.mark.parametrize("name", [*NAMES, "trial", "summary"])
def test_every_schema_is_a_schema_whose_references_lead_somewhere(name: str) -> None:
    schema = stored(name)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)
    for reference in references(schema):
        assert reference.removeprefix("#/$defs/") in schema["$defs"]


def test_the_columns_of_the_history_are_the_metrics_of_a_trial() -> None:
    properties = stored("trial")["properties"]
    columns = list(properties)
    assert columns[-len(TrialMetrics.model_fields) :] == list(TrialMetrics.model_fields)
    for name, field in TrialMetrics.model_fields.items():
        kind = "integer" if field.annotation == int | None else "number"
        assert properties[name]["type"] == [kind, "null"], name
    assert stored("trial")["required"] == columns
    assert properties["status"]["enum"] == [str(status) for status in TrialStatus]
    for name, column in properties.items():
        assert column.get("description"), name


def test_the_groups_hold_every_metric_once() -> None:
    assert [name for group in METRIC_GROUPS.values() for name in group] == list(TrialMetrics.model_fields)
    assert list(MeanMetrics.model_fields) == list(TrialMetrics.model_fields)


def a_check(**said: Any) -> dict[str, Any]:
    return {"graders": [{"type": "state_check", "expect": [said]}]}


@pytest.mark.parametrize(
    ("changes", "valid"),
    [
        ({}, True),
        ({"environment": None}, False),
        ({"trials": None}, False),
        ({"reference": None}, False),
        ({"gates": None}, False),
        (a_check(file="a"), True),
        (a_check(json_file="a", equals=None), True),
        (a_check(sqlite="a", query="b"), True),
        (a_check(sqlite="a"), False),
        (a_check(command="a"), True),
        (a_check(file="a", command="b"), False),
        (a_check(), False),
    ],
)
def test_null_leaves_no_key_out_and_the_forms_of_a_check_are_told_apart(changes: dict[str, Any], valid: bool) -> None:
    assert accepts("task", task_document(**changes)) is valid
