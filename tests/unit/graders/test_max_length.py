"""The length of the final answer."""

import pytest
from pydantic import ValidationError

from passgate.tasks.model.graders import MaxLength
from tests.unit.graders.trials import Graded


@pytest.mark.parametrize(
    ("answer", "passed"),
    [("", True), ("yes", True), ("  yes\n", True), ("yes!", False), ("für", True), ("日本語", True)],
)
async def test_the_characters_of_the_answer_are_counted(graded: Graded, answer: str, passed: bool) -> None:
    found = await graded({"type": "max_length", "characters": 3}, answer)
    assert (found.passed, found.score, found.error) == (passed, float(passed), None)


async def test_the_message_says_both_lengths(graded: Graded) -> None:
    found = await graded({"type": "max_length", "characters": 3}, "too long")
    assert found.checks[0].message == "the answer has 8 characters, at most 3 are allowed"


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValidationError, match="characters"):
        MaxLength(type="max_length", characters=0)
