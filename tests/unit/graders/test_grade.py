from typing import Any, get_args

import pytest

from passgate.tasks.graders import AGENTV_GRADERS, GRADERS
from passgate.tasks.model.assertions import Unavailable
from passgate.tasks.model.graders import Grader, OutputCheck
from passgate.tasks.model.transcript import Transcript
from tests.unit.graders.trials import Graded


def test_every_grader_type_has_its_function() -> None:
    union, _ = get_args(Grader)
    types = {name for model in get_args(union) for name in get_args(model.model_fields["type"].annotation)}
    assert GRADERS.keys() == AGENTV_GRADERS.keys() == types


async def test_a_grader_that_passgate_does_not_have_cannot_measure(graded: Graded) -> None:
    result = await graded(Unavailable(type="unavailable", kind="similar"), "42")
    assert result.error == "passgate has no grader 'similar'"


@pytest.mark.parametrize(("name", "label"), [(None, "output_check"), ("the answer", "the answer")])
async def test_a_grade_has_the_graders_name_and_type(name: str | None, label: str, graded: Graded) -> None:
    for wanted in ({"equals": "42"}, {}):
        result = await graded(OutputCheck(type="output_check", name=name, **wanted), "42")
        assert (result.name, result.type) == (label, "output_check")


async def test_an_exception_of_a_grader_is_the_error_of_its_grade(graded: Graded) -> None:
    nothing: Any = None
    broken = Transcript.model_construct(output=nothing)
    options = OutputCheck(type="output_check", contains=("x",))
    result = await graded(options, broken)
    assert not result.transient
    assert result.error.startswith("the grader raised TypeError: ")


async def test_an_expression_that_cannot_be_compiled_is_an_error(graded: Graded) -> None:
    assert (await graded(OutputCheck(type="output_check", matches="("), "x")).error
