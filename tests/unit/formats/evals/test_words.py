"""Mappings are taken apart by models: every spelling is one key, and nothing is overlooked."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from passgate.tasks.formats.document import Document
from passgate.tasks.formats.evals.documents import Documents, Ground
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.words import AS_WHOLE, EvalWords, Parts, Whole, take_apart, word
from tests.unit.formats.evals.eval_files import Told


class Order(EvalWords):
    """What is ordered."""

    REFUSED = {"price": "leave it out"}
    NULL = frozenset({"answer"})
    UNUSED = ("colour",)

    number: Annotated[int, Field(ge=1), AS_WHOLE] = word("How many.", "number", "how_many", needed=True)
    kind: Literal["large", "small"] = word("Which.")
    names: str | list[str] = word("For whom.")
    items: dict[str, Any] = word("What.")
    max_weight: Whole = word("How heavy.")
    answer: Any = word("What is said.")


def apart(said: dict[str, Any], *, further: bool = False) -> tuple[Parts, Told]:
    complaints = Complaints()
    node = Node(said, Document("f.yaml", said), Path())
    documents = Documents(Ground(Path(), Path()), complaints, {}, str)
    return take_apart(node, Order, documents, further=further), Told(complaints)


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ({"number": 2}, {"number": 2}),
        ({"how-many": 2.0, "maxWeight": 3}, {"number": 2.0, "max_weight": 3}),
        ({"number": 1, "howMany": 1.0, "kind": None}, {"number": 1}),
        ({"number": 1, "answer": None}, {"number": 1, "answer": None}),
        ({"number": 1, "config": {"kind": "large"}, "colour": [1]}, {"number": 1, "kind": "large"}),
        ({"number": 1, "names": ["a"], "items": {"x": None}}, {"number": 1, "names": ["a"], "items": {"x": None}}),
    ],
)
def test_a_key_has_one_name_in_all_its_spellings(said: dict[str, Any], values: dict[str, Any]) -> None:
    parts, told = apart(said)
    assert (told.problems, parts.sound) == ([], True)
    assert {name: part.value for name, part in parts.values.items()} == values


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({}, ": the key 'number' is missing"),
        ({"numbr": 1}, "numbr: unknown key; did you mean 'number'?"),
        ({"number": 1, "how_many": 2}, "how_many: 'number' and 'how_many' mean the same and differ; keep one of them"),
        ({"number": 0}, "number: must be at least 1, not 0"),
        ({"number": "1"}, 'number: expected a whole number, not "1"'),
        ({"number": 1, "kind": "huge"}, 'kind: "huge" is not one of the allowed values; known: large, small'),
        ({"number": 1, "kind": [1]}, "kind: expected a text, not [1]"),
        ({"number": 1, "names": 3}, "names: expected a text or a list, not 3"),
        ({"number": 1, "names": ["a", 3]}, "names[1]: expected a text, not 3"),
        ({"number": 1, "config": {"maxWeight": 1.5}}, "config.maxWeight: expected a whole number, not 1.5"),
        ({"number": 1, "price": 3}, "price: leave it out"),
    ],
)
def test_what_is_wrong_is_told_at_the_key_as_it_is_written(said: dict[str, Any], problem: str) -> None:
    parts, told = apart(said)
    assert (told.problems, parts.sound) == ([problem], False)
    assert problem.partition(":")[0] not in parts.values


def test_further_keys_are_kept_unless_they_are_nearly_known() -> None:
    parts, told = apart({"number": 1, "wrapping": "red", "kinds": "large"}, further=True)
    assert [*parts.further] == ["wrapping"]
    assert told.problems == ["kinds: unknown key; did you mean 'kind'?"]
