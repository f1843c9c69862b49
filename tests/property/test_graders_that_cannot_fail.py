"""What is told of graders from their options holds for every answer."""

import re
import warnings

import regress
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.graders.vacuous import javascript_finds_everything, python_finds_everything

PIECES = [
    *("a", "b", ".", "\\s", "\\S", "[ab]", "[^a]", "\\b", "\\B"),
    *("(", ")", "(?:", "(?=", "(?!", "|", "*", "+", "?", "^", "$"),
]
patterns = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
texts = st.text(alphabet="ab \n.", max_size=8)


@given(pattern=patterns, answers=st.lists(texts, min_size=1, max_size=8))
def test_an_expression_that_is_called_found_everywhere_is(pattern: str, answers: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if python_finds_everything(pattern):
            assert all(re.search(pattern, answer) is not None for answer in answers)
    if javascript_finds_everything(pattern):
        assert all(regress.Regex(pattern).find(answer) is not None for answer in answers)
