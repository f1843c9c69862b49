"""The binomial distribution."""

import pytest

from passgate.tasks.stats.estimators import binomial


def test_the_chances_of_every_number() -> None:
    assert binomial(3, 0.5) == [0.125, 0.375, 0.375, 0.125]
    assert binomial(0, 0.3) == [1.0]
    assert binomial(2, 1.0) == [0.0, 0.0, 1.0]
    assert sum(binomial(40, 0.37)) == pytest.approx(1)
