from typing import Any

import pytest

from passgate.tasks.graders import GRADERS, grade_function
from passgate.tasks.model.graders import GRADER_TYPES
from passgate.tasks.model.transcript import Transcript
from tests.unit.graders.trials import Graded

NOTHING: Any = None


@pytest.mark.parametrize(("name", "label"), [(None, "output_check"), ("the answer", "the answer")])
@pytest.mark.parametrize("wanted", [{"equals": "42"}, {}], ids=["a grade", "an error"])
async def test_a_grade_has_the_graders_name_and_type(wanted: Any, name: str | None, label: str, graded: Graded) -> None:
    result = await graded({"type": "output_check", "name": name, **wanted}, "42")
    assert (result.name, result.type) == (label, "output_check")


@pytest.mark.parametrize(
    ("options", "transcript", "error"),
    [
        ({"type": "unavailable", "kind": "similar"}, "42", "passgate has no grader 'similar'"),
        ({"type": "output_check", "matches": "("}, "x", "the grader raised "),
        (
            {"type": "output_check", "contains": ["x"]},
            Transcript.model_construct(output=NOTHING),
            "the grader raised TypeError: ",
        ),
    ],
    ids=["a grader that passgate does not have", "an expression that cannot be compiled", "a broken transcript"],
)
async def test_what_a_grader_cannot_do_is_an_error(options: Any, transcript: Any, error: str, graded: Graded) -> None:
    result = await graded(options, transcript)
    assert result.error.startswith(error)
    assert not result.transient


def test_every_type_of_grader_has_a_function() -> None:
    assert set(GRADERS) == set(GRADER_TYPES)
    assert all(callable(grade_function(kind)) for kind in GRADERS)
