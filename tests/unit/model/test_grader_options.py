import pytest

from passgate.tasks.model.grader_options import regex_problem


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        *(("^Paris", "gm"), (r"(?<year>\d{4})-\k<year>", "dy"), ("(?<!a)b", "s"), ("(?i:hello)", "")),
        *((r"\p{Lu}", "u"), ("[[a-z]--[aeiou]]", "v"), ("a{2", ""), ("", "")),
    ],
)
def test_what_javascript_takes(pattern: str, flags: str) -> None:
    assert regex_problem(pattern, flags) is None


@pytest.mark.parametrize(
    ("pattern", "flags", "said"),
    [
        *(("([", "", "bracket"), ("(a", "", "parenthesis"), ("(?i)hello", "", "give the i as a flag instead")),
        *(("a", "x", "unknown flag 'x'"), ("a", "ii", "a flag is there twice in 'ii'")),
        ("a", "uv", "the flags 'u' and 'v' exclude each other"),
        ("\ud800", "", "half of a character"),
    ],
)
def test_what_javascript_refuses(pattern: str, flags: str, said: str) -> None:
    problem = regex_problem(pattern, flags)
    assert problem is not None
    assert problem.startswith("no regular expression as JavaScript knows them: ")
    assert said in problem
