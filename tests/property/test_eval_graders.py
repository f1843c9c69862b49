"""Whatever a list of assertions holds, reading it ends with graders or with problems, never with an exception."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from tests.property.documents import nested

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import DocumentPath, format_path
from passgate.tasks.formats.evals.documents import Documents, Ground
from passgate.tasks.formats.evals.forms import Form
from passgate.tasks.formats.evals.graders import FORMS, read_graders
from passgate.tasks.formats.evals.judges import RubricItem
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.words import EvalWords, Sources, names_by_spelling
from passgate.tasks.formats.schema_check import input_schema
from passgate.tasks.model.assertions import Rubrics
from passgate.tasks.model.graders import Grader

FOLDER = Path(tempfile.gettempdir()) / "no-such-folder-of-evals"

texts = st.text(max_size=12) | st.sampled_from(
    ["a", "./a.md", "a.py", "../../a", "file://a", "any", "exact", "\x00", "/"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = nested(scalars, texts)
of_type = {
    "string": texts,
    "number": st.integers(-1, 12) | st.floats(-1, 2) | st.just(10**400),
    "integer": st.integers(-1, 12) | st.just(10**30),
    "boolean": st.booleans(),
    "array": st.lists(values, max_size=3),
    "object": st.dictionaries(texts, values, max_size=3),
}


class _Places:
    file = "EVAL.yaml"

    def problem(self, path: DocumentPath, message: str, *, at_key: bool = False) -> Problem:
        return Problem(file=self.file, line=1, column=1, path=format_path(path), message=message)


def read(value: Any) -> tuple[tuple[Grader, ...], Complaints]:
    complaints = Complaints()
    sources = Sources(Documents(Ground(FOLDER, FOLDER), complaints, {}, str), complaints)
    return read_graders(Node(value, _Places(), FOLDER), sources), complaints


def value_of(schema: dict[str, Any], wild: bool) -> st.SearchStrategy[Any]:
    if "enum" in schema and not wild:
        return st.sampled_from(schema["enum"])
    types = [option.get("type") for option in schema.get("anyOf", [schema])]
    likely = [of_type[kind] for kind in types if kind in of_type]
    if "array" in types:
        likely.append(st.lists(st.deferred(lambda: assertions | items), max_size=2))
    return st.one_of(*likely, values) if wild or not likely else st.one_of(*likely)


def mapping_of(words: type[EvalWords], *, wild: bool = True, **fixed: Any) -> st.SearchStrategy[dict[str, Any]]:
    schema = input_schema(words, "", "")
    spelled = {name: spelling for spelling, name in names_by_spelling(words).items()}
    likely = {name: value_of(value, wild) for name, value in schema["properties"].items() if name not in fixed}
    needed = {spelled[name]: likely.pop(name) for name in schema.get("required", ()) if name in likely}
    return st.fixed_dictionaries({**needed, **fixed}, optional={spelled[name]: value for name, value in likely.items()})


def assertion_of(form: Form, *, wild: bool) -> st.SearchStrategy[dict[str, Any]]:
    names = [*form.names, *(f"not-{name}" for name in form.names)]
    return mapping_of(form.words, wild=wild, type=st.sampled_from(names))


items = st.one_of(texts, mapping_of(RubricItem))
assertions = st.one_of(*(assertion_of(form, wild=True) for form in FORMS))
likely_assertions = st.one_of(*(assertion_of(form, wild=False) for form in FORMS))


@given(value=values)
@example(value=[{"type": "contains", "value": "a", "weight": 10**400}])
@example(value=[{"type": "custom" * 100}])
@example(value=[{"type": "\x00"}, {"include": "\x00"}, {"include": "./\x00.yaml"}, {"include": "a" * 5000}])
def test_any_value_is_graders_or_problems(value: Any) -> None:
    graders, complaints = read(value)
    if not graders and value != []:
        assert complaints.problems


@given(said=st.lists(assertions, min_size=1, max_size=3))
def test_no_assertion_is_lost(said: list[dict[str, Any]]) -> None:
    graders, complaints = read(said)
    for problem in (*complaints.problems, *complaints.cannot_run):
        assert problem.path.startswith("[")
        assert problem.message
    assert len(graders) == len(said) or complaints.problems
    assert len(graders) <= len(said)


@given(said=assertions | likely_assertions)
def test_a_grader_that_was_read_is_valid_and_keeps_its_weight(said: dict[str, Any]) -> None:
    graders, complaints = read([said])
    for grader in graders:
        assert complaints.problems == []
        assert type(grader).model_validate(grader.model_dump()) == grader
        assert grader.weight == (1 if said.get("weight") is None else said["weight"])


@given(said=st.lists(st.one_of(st.text(min_size=1), st.just({"type": "is-json"})), min_size=1, max_size=8))
def test_texts_are_one_rubric_whose_weight_is_their_number(said: list[Any]) -> None:
    graders, complaints = read(said)
    assert complaints.problems == []
    written = [item for item in said if isinstance(item, str)]
    rubrics = [grader for grader in graders if isinstance(grader, Rubrics)]
    assert [[criterion.outcome for criterion in rubric.criteria] for rubric in rubrics] == (
        [written] if written else []
    )
    assert sum(grader.weight for grader in graders) == len(said)
    if written:
        assert graders.index(rubrics[0]) == said.index(written[0])


@given(starts=st.sets(st.integers(1, 10)), words=st.lists(st.text(min_size=1), min_size=11, max_size=11))
def test_both_forms_of_spans_of_points_are_the_same(starts: set[int], words: list[str]) -> None:
    lows = sorted({0, *starts})
    highs = [low - 1 for low in lows[1:]] + [10]
    by_bound = {str(low): words[low] for low in reversed(lows)}
    as_list = [{"score_range": [low, high], "outcome": words[low]} for low, high in zip(lows, highs, strict=True)]
    criteria = [{"id": "a", "score_ranges": by_bound}, {"id": "b", "score_ranges": as_list}]
    (grader,), complaints = read([{"type": "rubrics", "criteria": criteria}])
    assert complaints.problems == []
    assert isinstance(grader, Rubrics)
    first, second = grader.criteria
    assert first.score_ranges == second.score_ranges
    assert [(span.low, span.high) for span in first.score_ranges] == list(zip(lows, highs, strict=True))
