"""What is told of graders from their options holds for every answer."""

import re
import warnings

import regress
from hypothesis import assume, given
from hypothesis import strategies as st

from passgate.tasks.graders.grader_checks.always_true import javascript_finds_everything, python_finds_everything
from passgate.tasks.graders.grader_checks.demands import lacking
from passgate.tasks.model.assertions import TextAssertion
from passgate.tasks.model.graders import OutputCheck

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


@given(
    answer=st.text(alphabet="abcß ", min_size=1, max_size=30),
    wanted=st.lists(st.text(alphabet="abcß", min_size=1, max_size=3), min_size=1, max_size=3),
    ignore_case=st.booleans(),
)
def test_a_beginning_that_is_said_to_lack_what_is_asked_for_does(
    answer: str, wanted: list[str], ignore_case: bool
) -> None:
    assume(any(text in answer for text in wanted))
    check = OutputCheck(type="output_check", contains=tuple(wanted), ignore_case=ignore_case)
    cut = lacking(check, answer)
    if cut is not None:
        kept = answer[:cut].casefold() if ignore_case else answer[:cut]
        present = [text for text in wanted if text in answer]
        assert not any((text.casefold() if ignore_case else text) in kept for text in present)


@given(answer=texts, value=st.text(alphabet="ab", min_size=1, max_size=3))
def test_nothing_is_cut_off_an_answer_that_lacks_the_text(answer: str, value: str) -> None:
    assume(value not in answer)
    assert lacking(TextAssertion(type="contains", value=value), answer) is None
