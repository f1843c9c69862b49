"""How the numbers of trials are written."""

import pytest

from passgate.tasks.model.trial import trial_numbers


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ((4,), "trial 4"),
        ((7, 1, 2, 3), "trials 1-3, 7"),
        ((2, 2), "trial 2"),
        (range(1, 41, 2), "trials 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, ..."),
    ],
)
def test_trial_numbers(numbers: tuple[int, ...], shown: str) -> None:
    assert trial_numbers(numbers) == shown
