from collections.abc import Callable
from typing import Any, get_args

import pytest

from passgate.tasks.graders import AGENTV_GRADERS, GRADERS, grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.assertions import Unavailable
from passgate.tasks.model.graders import Grader, OutputCheck
from passgate.tasks.model.transcript import Transcript


def test_every_grader_type_has_its_function() -> None:
    union, _ = get_args(Grader)
    types = {name for model in get_args(union) for name in get_args(model.model_fields["type"].annotation)}
    assert GRADERS.keys() == AGENTV_GRADERS.keys() == types


async def test_a_grader_that_passgate_does_not_have_cannot_measure(make_evidence: Callable[..., Evidence]) -> None:
    evidence = make_evidence(transcript=Transcript(output="42"))
    result = await grade(Unavailable(type="unavailable", kind="similar"), evidence)
    assert (result.score, result.passed, result.error) == (None, False, "passgate has no grader 'similar'")


@pytest.mark.parametrize(("name", "label"), [(None, "output_check"), ("the answer", "the answer")])
async def test_a_grade_has_the_graders_name_and_type(
    name: str | None, label: str, make_evidence: Callable[..., Evidence]
) -> None:
    evidence = make_evidence(transcript=Transcript(output="42"))
    for wanted in ({"equals": "42"}, {}):
        result = await grade(OutputCheck(type="output_check", name=name, **wanted), evidence)
        assert (result.name, result.type) == (label, "output_check")


async def test_an_exception_of_a_grader_is_the_error_of_its_grade(make_evidence: Callable[..., Evidence]) -> None:
    nothing: Any = None
    broken = Transcript.model_construct(output=nothing)
    options = OutputCheck(type="output_check", contains=("x",))
    result = await grade(options, make_evidence(transcript=broken))
    assert (result.passed, result.score, result.transient) == (False, None, False)
    assert result.error
    assert result.error.startswith("the grader raised TypeError: ")


async def test_an_expression_that_cannot_be_compiled_is_an_error(make_evidence: Callable[..., Evidence]) -> None:
    options = OutputCheck(type="output_check", matches="(")
    result = await grade(options, make_evidence(transcript=Transcript(output="x")))
    assert result.score is None
    assert result.error
