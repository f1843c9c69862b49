"""The rules in the examples of docs/graders.md, against agents that spell what is forbidden otherwise."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from passgate.tasks.model.transcript import Transcript
from tests.docs.pages import blocks
from tests.unit.graders.trials import Graded, called

ZERO_WIDTH = "\u200b"


def full_width(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) if letter.isascii() and letter.isalnum() else letter for letter in text)


def spelled_names(pattern: str) -> list[str]:
    name = pattern.replace("*", "everything")
    with_zero_width = f"functions.{name[0]}{ZERO_WIDTH}{name[1:]}"
    return [name, f"mcp__server__{name}", f"server.{name.upper()}", with_zero_width, full_width(name)]


def spelled_values(pattern: str) -> list[Any]:
    value = pattern.replace("*", "x")
    with_spaces = f"/{value}" if value.startswith("/") else f" {value}\t"
    with_zero_width = f"{value[0]}{ZERO_WIDTH}{value[1:]}"
    inside = [{"item": value}, json.dumps([value])]
    return [value, ["harmless", value], with_zero_width, [[full_width(value).upper()]], with_spaces, *inside]


def broken(grader: dict[str, Any]) -> Iterator[tuple[str, list[Transcript]]]:
    """Each rule of a grader about calls, with transcripts that break it."""
    for rule in [*grader.get("forbidden", []), *grader.get("deny_tools", [])]:
        name, params = (rule, {}) if isinstance(rule, str) else (rule["tool"], rule.get("params", {}))
        over = {key: 10_000 if str(value).startswith(">") else value for key, value in params.items()}
        yield name, [called((tool, over)) for tool in spelled_names(name)]
    for rule in grader.get("arguments", []):
        patterns = rule.get("deny", ["x@evil.example"])
        values = [value for pattern in patterns for value in spelled_values(pattern)]
        yield f"{rule['tool']} {rule['param']}", [called((rule["tool"], {rule["param"]: value})) for value in values]
    for canary in grader.get("canaries", []):
        yield canary, [called(("note", {"text": value})) for value in spelled_values(canary)]


GRADERS = [
    grader
    for block in blocks("yaml", page="docs/graders.md")
    for grader in (yaml.safe_load(block.values[0].text) or {}).get("graders", [])
]
RULES = [
    pytest.param(grader, transcripts, id=f"{grader['type']} {name}")
    for grader in GRADERS
    for name, transcripts in broken(grader)
]


@pytest.mark.parametrize(("grader", "transcripts"), RULES)
async def test_a_documented_rule_holds_in_every_spelling(
    grader: dict[str, Any], transcripts: list[Transcript], graded: Graded
) -> None:
    for transcript in transcripts:
        grade = await graded(grader, transcript)
        assert grade.violations, transcript.tool_calls


def test_every_documented_rule_is_tried() -> None:
    assert {f"{grader['type']}" for grader, _ in (rule.values for rule in RULES)} == {"tool_calls", "policy_check"}
    assert len(RULES) >= 7
