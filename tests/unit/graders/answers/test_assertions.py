from typing import Any

import pytest
from pydantic import ValidationError

from passgate.tasks.model.assertions import Equals, TextAssertion
from tests.unit.graders.trials import Graded

ANSWER = "  Hello World\nParis is the capital of France. \n"


@pytest.mark.parametrize(
    ("kind", "value", "score"),
    [
        ("contains", "Paris", 1.0),
        ("contains", "paris", 0.0),
        ("icontains", "pARIS", 1.0),
        ("icontains", "Rome", 0.0),
        ("contains_any", ("Rome", "Paris"), 1.0),
        ("contains_any", ("Rome", "paris"), 0.0),
        ("contains_all", ("Hello", "Paris"), 1.0),
        ("contains_all", ("Paris", "Rome"), 0.0),
        ("icontains_any", ("ROME", "PARIS"), 1.0),
        ("icontains_any", ("ROME", "BERN"), 0.0),
        ("icontains_all", ("HELLO", "paris"), 1.0),
        ("icontains_all", ("HELLO", "rome"), 0.0),
        ("starts_with", "  Hello", 1.0),
        ("starts_with", "World", 0.0),
        ("starts_with", "hello", 0.0),
        ("ends_with", "France.  ", 1.0),
        ("ends_with", "France", 0.0),
    ],
)
async def test_answers_against_texts(kind: Any, value: str | tuple[str, ...], score: float, graded: Graded) -> None:
    result = await graded(TextAssertion(type=kind, value=value), ANSWER)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)
    assert result.type == kind


async def test_blanks_are_those_of_javascript(graded: Graded) -> None:
    transcript = "\ufeff\u3000\u2028Hello\x1c"
    assert (await graded(TextAssertion(type="starts_with", value="Hello"), transcript)).passed
    assert not (await graded(TextAssertion(type="ends_with", value="Hello"), transcript)).passed


async def test_a_message_names_each_text_that_is_missing(graded: Graded) -> None:
    result = await graded(TextAssertion(type="contains_all", value=("Paris", "Rome", "Bern")), ANSWER)
    assert [(check.passed, check.message) for check in result.checks] == [
        (True, "the answer contains 'Paris', as expected"),
        (False, "the answer does not contain 'Rome', but must"),
        (False, "the answer does not contain 'Bern', but must"),
    ]


async def test_a_message_of_any_names_all(graded: Graded) -> None:
    result = await graded(TextAssertion(type="icontains_any", value=("Rome", "x" * 5000)), ANSWER)
    assert result.checks[0].message.startswith("the answer contains none of 'Rome', 'xxx")
    assert result.checks[0].message.endswith(" (ignoring case), but must contain one of them")
    assert len(result.checks[0].message) < 500


@pytest.mark.parametrize(
    ("kind", "value"),
    [("contains", ("a", "b")), ("contains_all", "a"), ("contains_any", ()), ("contains", ""), ("starts_with", " \n")],
)
def test_options_that_ask_nothing_or_the_wrong_thing_are_refused(kind: Any, value: Any) -> None:
    with pytest.raises(ValidationError):
        TextAssertion(type=kind, value=value)


@pytest.mark.parametrize(
    ("answer", "value", "score"),
    [
        ("  42 \n", "42", 1.0),
        ("Yes", "yes", 0.0),
        ("42", " 42", 1.0),
        ("42", 42, 1.0),
        (" 42\n", 42, 1.0),
        ("42.0", 42, 1.0),
        ("43", 42, 0.0),
        ('"42"', 42, 0.0),
        ("forty-two", 42, 0.0),
        ("true", True, 1.0),
        ("1", True, 0.0),
        ("null", None, 1.0),
        ("", None, 0.0),
        ('{"b": [1, 2], "a": null}', {"a": None, "b": [1, 2]}, 1.0),
        ('{"b": [2, 1], "a": null}', {"a": None, "b": [1, 2]}, 0.0),
        ("NaN", 0, 0.0),
        ("[" * 100_000, [], 0.0),
    ],
)
async def test_answers_that_are_to_be_equal(answer: str, value: Any, score: float, graded: Graded) -> None:
    result = await graded(Equals(type="equals", value=value), answer)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)


async def test_a_message_shows_both_values_shortened(graded: Graded) -> None:
    message = (await graded(Equals(type="equals", value={"total": 3}), "y" * 10_000)).checks[0].message
    assert 'expected {"total": 3}' in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("Paris", "the answer contains 'Paris', but must not"),
        ("Rome", "the answer does not contain 'Rome', as expected"),
    ],
)
async def test_a_negated_text_says_what_must_not_be(value: str, says: str, graded: Graded) -> None:
    result = await graded(TextAssertion(type="contains", value=value, negate=True), ANSWER)
    assert [check.message for check in result.checks] == [says]
