"""What docs/compatibility.md says of AgentV and of passgate beside it."""

import re
from pathlib import Path

import pytest

from passgate.tasks.model.graders import GRADER_TYPES
from tests.conformance.compare import Finding
from tests.conformance.explained import EXPLANATIONS, FORMULAS
from tests.docs.pages import code_in, rows, section, table
from tests.project import REPOSITORY

PAGE = "docs/compatibility.md"
HOLES = "tests/flows/test_agentv_holes.py"


def named_in(file: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_graders_whose_formulas_differ() -> None:
    differing = rows(table(section(PAGE, "Where the formulas differ"), "grader"))[2:]
    assert {kind for row in differing for kind in code_in(row[0])} <= GRADER_TYPES.keys()
    # Of the others no corpus has an answer that shows the difference.
    unseen = {"regex", "is_json", "tool_arguments", "skill_trigger"}
    assert {row[0].replace("`", "") for row in differing} - unseen == {known.name for known in FORMULAS}


def test_every_hole_is_numbered_and_has_its_tests() -> None:
    holes = re.findall(r"^(\d+)\. ", section(PAGE, "Eighteen holes"), re.MULTILINE)
    assert holes == [str(number) for number in range(1, 19)]
    assert {name.split("_")[1] for name in named_in(REPOSITORY / HOLES)} == {*holes}


DIFFERENCES = dict(re.findall(r"- \*\*(.*?)\*\*: .*?\s\(`([^`]+)`\)\n", section(PAGE, "Other differences"), re.DOTALL))


def test_the_differences_and_words_are_those_of_the_conformance_run() -> None:
    assert list(DIFFERENCES) == [explanation.name for explanation in EXPLANATIONS]
    assert set(Finding) <= code_in(section(PAGE, "Conformance"))


@pytest.mark.parametrize("named", DIFFERENCES.values())
def test_what_passgate_does_instead_is_tested(named: str) -> None:
    assert any(named in named_in(file) for file in (REPOSITORY / "tests").rglob("test_*.py"))
