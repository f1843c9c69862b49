"""Whatever the scores of members are: what they come to together."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.composite import GradedMember, aggregate, combine
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Aggregator, Composite

FORMULAS = ("weighted_average", "minimum", "maximum", "safety_gate", "all_or_nothing", "threshold")
SCORES = st.floats(0, 1)
WEIGHTS = st.floats(0.01, 100)
ANY_AGGREGATOR = st.builds(
    lambda kind, threshold: Aggregator(
        type=kind, threshold=threshold, required=("m0",) if kind == "safety_gate" else ()
    ),
    st.sampled_from(FORMULAS),
    st.none() | SCORES,
)


def a_member(number: int, score: float | None, weight: float, *, may_bind: bool = False) -> GradedMember:
    error = "no judge" if score is None else None
    grade = Grade(name=f"m{number}", type="contains", score=score, passed=(score or 0) >= 0.8, error=error)
    return GradedMember(f"m{number}", grade, weight, safe_from=0.6, may_bind=may_bind)


@st.composite
def members(draw: st.DrawFn, scores: st.SearchStrategy[float | None] = SCORES) -> list[GradedMember]:
    pairs = draw(st.lists(st.tuples(scores, WEIGHTS), min_size=1, max_size=6))
    return [a_member(number, score, weight) for number, (score, weight) in enumerate(pairs)]


def whole(aggregator: Aggregator, found: list[GradedMember], **options: Any) -> Grade:
    return combine(
        Composite.model_validate({"type": "composite", "assertions": [{"type": "contains", "value": "x"}], **options}),
        aggregator,
        found,
    )


def measured(found: list[GradedMember], scores: list[float]) -> list[GradedMember]:
    """The members with the scores in place of those that are not known."""
    given_scores = iter(scores)
    return [
        member
        if member.grade.score is not None
        else a_member(number, next(given_scores), member.weight, may_bind=member.may_bind)
        for number, member in enumerate(found)
    ]


@given(ANY_AGGREGATOR, members())
def test_the_score_is_a_share(aggregator: Aggregator, found: list[GradedMember]) -> None:
    assert -1e-12 <= aggregate(aggregator, found)[0] <= 1 + 1e-12


@given(members())
def test_an_average_lies_between_the_least_and_the_most(found: list[GradedMember]) -> None:
    low, mean, high = (
        aggregate(Aggregator(type=kind), found)[0] for kind in ("minimum", "weighted_average", "maximum")
    )
    assert low - 1e-12 <= mean <= high + 1e-12


@given(members(), st.floats(0.01, 100))
def test_an_average_does_not_depend_on_the_unit_of_weights(found: list[GradedMember], factor: float) -> None:
    scaled = [member._replace(weight=member.weight * factor) for member in found]
    kind = Aggregator(type="weighted_average")
    assert aggregate(kind, found)[0] == pytest.approx(aggregate(kind, scaled)[0])


@given(ANY_AGGREGATOR, members(), st.data())
def test_a_better_member_never_makes_it_worse(
    aggregator: Aggregator, found: list[GradedMember], data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(found) - 1))
    score = found[number].grade.score
    assert score is not None
    better = data.draw(st.floats(score, 1))
    improved = [*found[:number], a_member(number, better, found[number].weight), *found[number + 1 :]]
    assert aggregate(aggregator, improved)[0] >= aggregate(aggregator, found)[0] - 1e-12


@given(ANY_AGGREGATOR, members(st.none() | SCORES), st.lists(SCORES, min_size=6, max_size=6), st.none() | SCORES)
def test_what_is_certain_without_a_member_holds_whatever_it_would_have_been(
    aggregator: Aggregator, found: list[GradedMember], scores: list[float], bar: float | None
) -> None:
    try:
        certain = whole(aggregator, found, min_score=bar)
    except MeasurementError:
        return
    actual = whole(aggregator, measured(found, scores), min_score=bar)
    assert certain.passed is actual.passed
    assert certain.score is not None
    assert actual.score is not None
    assert certain.score <= actual.score + 1e-12
    assert not certain.fatal or actual.fatal


@given(ANY_AGGREGATOR, members())
def test_something_fatal_is_never_bought_back(aggregator: Aggregator, found: list[GradedMember]) -> None:
    grade = found[0].grade.model_copy(update={"fatal": "it is required", "passed": False})
    spoilt = [found[0]._replace(grade=grade), *found[1:]]
    answer = whole(aggregator, spoilt)
    assert (answer.passed, bool(answer.fatal)) == (False, True)
