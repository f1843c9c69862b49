"""What several grades use together."""

from passgate.tasks.graders.composites.composite import usage_of
from passgate.tasks.model.transcript import Usage
from tests.builders import a_grade


def test_grades_that_asked_nobody_say_nothing_of_usage() -> None:
    asked = a_grade(usage=Usage(tokens_in=10, cost_usd=0.5))
    assert usage_of([a_grade(), asked, asked]) == Usage(tokens_in=20, cost_usd=1.0)
    assert usage_of([a_grade()]) == Usage()


def test_an_unknown_price_makes_the_sum_unknown() -> None:
    grades = [a_grade(usage=Usage(tokens_in=10, cost_usd=0.5)), a_grade(usage=Usage(tokens_in=10))]
    assert usage_of(grades) == Usage(tokens_in=20)
