import asyncio
import time
from pathlib import Path

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers.assertions import LONGEST_TEXT, regex_found
from passgate.tasks.model.assertions import Regex
from tests.unit.graders.trials import Graded

ANSWER = "Hello World\nParis is the capital of France."
FOREVER = "(a+)+$"


@pytest.mark.parametrize(
    ("pattern", "flags", "score"),
    [
        ("capital", "", 1.0),
        ("^Paris", "", 0.0),
        ("^Paris", "m", 1.0),
        ("hello world", "", 0.0),
        ("hello world", "i", 1.0),
        ("Hello.*France", "", 0.0),
        ("Hello.*France", "s", 1.0),
        ("Paris", "y", 0.0),
        ("Hello", "y", 1.0),
        ("Paris", "gd", 1.0),
        (r"\p{Lu}aris", "u", 1.0),
        (r"\p{Lu}aris", "", 0.0),
    ],
)
async def test_a_pattern_is_found_as_javascript_finds_it(
    pattern: str, flags: str, score: float, graded: Graded
) -> None:
    options = Regex(type="regex", value=pattern, flags=flags)
    result = await graded(options, ANSWER)
    assert (result.score, result.passed, result.error) == (score, score == 1.0, None)
    assert f"/{pattern}/{flags}" in result.checks[0].message


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"^\d+$", "٣", False),
        ("a$", "a\n", False),
        (r"^\s$", "\ufeff", True),
        ("^.$", "\ud800", True),
        ("[^]", "\n", True),
        ("", "", True),
    ],
)
async def test_where_javascript_differs_from_python(pattern: str, text: str, expected: bool) -> None:
    assert await regex_found(pattern, "", text) is expected


@pytest.mark.parametrize("pattern", ["([", "(?i)hello"])
async def test_what_is_no_pattern_is_an_error(pattern: str, graded: Graded) -> None:
    result = await graded(Regex(type="regex", value=pattern), "([hello")
    assert "no regular expression as JavaScript knows them" in result.error


async def test_a_pattern_that_takes_forever_is_an_error_and_stops_nothing_else(graded: Graded) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    heart = asyncio.create_task(beat())
    started = time.monotonic()
    result = await graded(Regex(type="regex", value=FOREVER), "a" * 60 + "b")
    heart.cancel()
    assert "takes more than 2 s on this text" in result.error
    assert beats > 20
    assert time.monotonic() - started < 60


async def test_a_search_that_is_called_off_leaves_no_process() -> None:
    before = children()
    search = asyncio.create_task(regex_found(FOREVER, "", "a" * 60 + "b"))
    while children() == before:
        await asyncio.sleep(0.01)
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert children() <= before


def children() -> set[str]:
    return {child for listed in Path("/proc/self/task").glob("*/children") for child in listed.read_text().split()}


async def test_a_long_text_is_searched_to_its_end() -> None:
    assert await regex_found("needle$", "", "hay " * 1_000_000 + "needle")


async def test_a_text_without_bounds_is_not_searched() -> None:
    with pytest.raises(MeasurementError, match="too long for a regular expression"):
        await regex_found("a", "", "a" * (LONGEST_TEXT + 1))
