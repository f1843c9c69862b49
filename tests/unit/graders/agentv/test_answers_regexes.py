from collections.abc import Callable

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import Regex
from passgate.tasks.model.transcript import Transcript


@pytest.mark.parametrize(
    ("pattern", "flags", "score"),
    [
        ("hello world", "i", 1.0),
        ("hello world", "", 0.0),
        ("(?i)hello world", "", 0.0),
        ("([", "", 0.0),
        ("Hello", "ii", 0.0),
    ],
)
async def test_what_is_no_pattern_is_not_found(
    pattern: str, flags: str, score: float, agentv_evidence: Callable[..., Evidence]
) -> None:
    evidence = agentv_evidence(transcript=Transcript(output="Hello World (["))
    result = await grade(Regex(type="regex", value=pattern, flags=flags), evidence)
    assert (result.score, result.error) == (score, None)


async def test_a_pattern_that_takes_forever_is_an_error(agentv_evidence: Callable[..., Evidence]) -> None:
    evidence = agentv_evidence(transcript=Transcript(output="a" * 60 + "b"))
    result = await grade(Regex(type="regex", value="(a+)+$"), evidence)
    assert result.score is None
    assert result.error
