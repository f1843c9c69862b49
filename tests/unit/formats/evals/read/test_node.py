"""Mappings taken apart."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.document import Document
from passgate.tasks.formats.evals.read.node import Complaints, Key, Node, Parts, snake_case, take_apart
from passgate.tasks.formats.schema_check import Kind, is_kind, shown

KEYS = {
    "max_tokens": Key((Kind.WHOLE,), spellings=("limit",)),
    "tags": Key((Kind.LIST,), items=(Kind.TEXT,)),
    "weights": Key((Kind.MAPPING,), values=(Kind.NUMBER,)),
    "value": Key(null=True),
    "name": Key((Kind.TEXT,), needed=True),
}


def taken(said: dict[str, Any], **options: bool) -> tuple[Parts, list[str]]:
    complaints = Complaints()
    parts = take_apart(Node(said, Document("a.yaml", said), Path()), KEYS, complaints, **options)
    return parts, [f"{problem.path}: {problem.message}" for problem in complaints.problems]


@pytest.mark.parametrize("key", ["max_tokens", "maxTokens", "max-tokens", "limit", "Limit"])
def test_every_spelling_is_one_key_and_keeps_its_place(key: str) -> None:
    parts, problems = taken({"name": "a", key: 3})
    assert problems == []
    assert parts.sound
    assert parts.value("max_tokens") == 3
    assert parts.values["max_tokens"].path == (key,)


def test_null_is_as_if_the_key_were_not_there_unless_it_is_a_value() -> None:
    parts, problems = taken({"name": "a", "max_tokens": None, "value": None})
    assert problems == []
    assert parts.get("max_tokens") is None
    assert parts.value("max_tokens", 7) == 7
    assert parts.values["value"].value is None
    assert taken({"name": None})[1] == [": the key 'name' is missing"]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            {"limit": 3, "max_tokens": 4},
            "max_tokens: 'limit' and 'max_tokens' mean the same and differ; keep one of them",
        ),
        ({"tags": ["a", 1]}, "tags[1]: expected a text, not 1"),
        ({"weights": {"a": True}}, "weights.a: expected a number, not true"),
        ({"max_tokens": 1.5}, "max_tokens: expected a whole number, not 1.5"),
        ({"nme": "a"}, "nme: unknown key; did you mean 'name'?"),
    ],
)
def test_what_is_wrong_is_told(said: dict[str, Any], problem: str) -> None:
    parts, problems = taken({"name": "a", **said})
    assert problems == [problem]
    assert not parts.sound


def test_two_spellings_may_say_the_same() -> None:
    assert taken({"name": "a", "limit": 3, "maxTokens": 3.0})[1] == []
    assert taken({"name": "a", "limit": 1, "value": True})[1] == []


def test_further_keys_are_kept_as_they_are_written_unless_they_are_misspelt_ones() -> None:
    parts, problems = taken({"name": "a", "expectedTools": ["b"]}, further=True)
    assert problems == []
    assert {key: part.value for key, part in parts.further.items()} == {"expectedTools": ["b"]}
    assert taken({"name": "a", "max_token": 1}, further=True)[1] == [
        "max_token: unknown key; did you mean 'max_tokens'?"
    ]


def test_a_config_that_is_no_key_of_its_own_holds_keys() -> None:
    parts, problems = taken({"name": "a", "config": {"limit": 3}})
    assert problems == []
    assert parts.values["max_tokens"].path == ("config", "limit")
    assert taken({"name": "a", "config": 3})[1] == [
        "config: unknown key; known: limit, max_tokens, name, tags, value, weights"
    ]


def test_names_in_snake_case() -> None:
    assert [snake_case(name) for name in ("maxLlmCalls", "is-json", "a_b", "trajectory:tool-used")] == [
        "max_llm_calls",
        "is_json",
        "a_b",
        "trajectory:tool_used",
    ]


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (1, {Kind.NUMBER, Kind.WHOLE}),
        (2.0, {Kind.NUMBER, Kind.WHOLE}),
        (0.5, {Kind.NUMBER}),
        (10**400, {Kind.NUMBER, Kind.WHOLE}),
        (True, {Kind.TRUTH}),
        ("a", {Kind.TEXT}),
        ([], {Kind.LIST}),
        ({}, {Kind.MAPPING}),
        (None, set()),
    ],
)
def test_the_kinds_of_values(value: Any, kinds: set[Kind]) -> None:
    assert {kind for kind in Kind if is_kind(value, kind)} == kinds


def test_long_values_are_shown_cut_short() -> None:
    assert shown("a") == '"a"'
    assert len(shown("a" * 100)) == 60
