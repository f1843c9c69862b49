"""The map of the house in CONTRIBUTING.md against the folders."""

import ast
import re
from collections import Counter

from tests.project import REPOSITORY


def _mapped() -> dict[str, set[str]]:
    """The rooms that the map names, by the folder that they are in."""
    rooms: dict[str, set[str]] = {"flows": set(), "tasks": set()}
    folder = ""
    for line in (REPOSITORY / "CONTRIBUTING.md").read_text().splitlines():
        if match := re.match(r"    (flows|tasks|schema)/ ", line):
            folder = match[1]
        elif (match := re.match(r"      (\w+)/ ", line)) and folder in rooms:
            rooms[folder].add(match[1])
    return rooms


def test_the_map_names_every_room_and_the_verbs() -> None:
    for folder, mapped in _mapped().items():
        rooms = {file.parent.name for file in (REPOSITORY / folder).glob("*/__init__.py")}
        assert mapped == rooms, folder
    files = {file.name for file in (REPOSITORY / "tasks").glob("*.py")} - {"__init__.py", "errors.py"}
    listed = re.search(r"^    tasks/ +(.+): the verbs$", (REPOSITORY / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert listed is not None
    assert files == set(listed[1].split())


def test_the_way_of_a_trial_leads_through_these_functions_and_is_short() -> None:
    section = (REPOSITORY / "CONTRIBUTING.md").read_text().partition("## Follow one trial")[2].partition("\n## ")[0]
    steps = re.findall(r"^\d+\. `([\w/.]+)`, `(\w+)`: ", section, re.MULTILINE)
    assert len(steps) == len(re.findall(r"^\d+\. ", section, re.MULTILINE)) <= 12
    for place, function in steps:
        files = [REPOSITORY / place] if place.endswith(".py") else sorted((REPOSITORY / place).rglob("*.py"))
        definition = re.compile(rf"^(async )?def {function}\(", re.MULTILINE)
        assert any(definition.search(file.read_text()) for file in files), (place, function)


def test_contributing_names_rooms_and_files_that_exist() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:flows|tasks|tests|bench|schema|suites)/[\w/.]+)`", text)
    assert [name for name in named if not re.search("[A-Z]", name) and not (REPOSITORY / name).exists()] == []


def test_no_class_name_stands_twice() -> None:
    files = (file for folder in ("flows", "tasks") for file in (REPOSITORY / folder).rglob("*.py"))
    names = Counter(
        node.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []
