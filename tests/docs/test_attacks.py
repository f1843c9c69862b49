"""The attacks that docs/integrity.md lists, held against those that are tried."""

import ast

from tests.docs.pages import rows, section
from tests.project import REPOSITORY

FILES = sorted((REPOSITORY / "tests/attacks").glob("test_*.py"))


def test_every_attack_is_listed_with_its_answer_and_every_listed_one_is_tried() -> None:
    listed = [row[0].strip("`") for row in rows(section("docs/integrity.md", "Attacks"))[2:]]
    assert listed == [file.stem.removeprefix("test_") for file in FILES]


def test_every_attack_says_what_it_tries_and_what_must_come() -> None:
    for file in FILES:
        said = ast.get_docstring(ast.parse(file.read_text())) or ""
        tries, _, must = said.partition("\n\n")
        assert (tries[:7], must[:11]) == ("Tries: ", "Must come: "), file.name
