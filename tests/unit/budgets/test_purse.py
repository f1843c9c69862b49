"""The money of a run."""

from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.budgets.purse import Purse


def test_without_a_cap_there_is_always_enough() -> None:
    purse = Purse()
    for _ in range(3):
        reservation = purse.reserve(1000.0)
        assert reservation is not None
        purse.settle(reservation, 1000.0)
    assert purse.spent == 3000.0
    assert not purse.exhausted


def test_what_is_put_aside_counts_before_it_is_spent() -> None:
    purse = Purse(1.0)
    first = purse.reserve(0.6)
    assert first is not None
    assert purse.reserve(0.6) is None
    assert purse.exhausted


def test_once_a_call_was_refused_nothing_more_is_begun() -> None:
    purse = Purse(1.0)
    reservation = purse.reserve(0.9)
    assert reservation is not None
    assert purse.reserve(0.2) is None
    purse.release(reservation)
    assert purse.reserve(0.01) is None


def test_a_call_is_expected_to_cost_what_calls_cost_on_average() -> None:
    purse = Purse(1.0)
    for _ in range(2):
        reservation = purse.reserve(0.0)
        assert reservation is not None
        purse.settle(reservation, 0.4)
    assert purse.reserve(0.0) is None
    assert purse.spent == 0.8


def test_a_call_of_unknown_cost_is_taken_for_what_was_put_aside() -> None:
    purse = Purse(1.0)
    reservation = purse.reserve(0.25)
    assert reservation is not None
    purse.settle(reservation, None)
    assert purse.spent == 0.25


def test_what_a_call_did_not_cost_is_there_for_the_next_one() -> None:
    purse = Purse(1.0)
    reservation = purse.reserve(0.5)
    assert reservation is not None
    purse.settle(reservation, 0.1)
    assert purse.reserve(0.85) is not None


def test_money_that_was_spent_before_counts() -> None:
    assert Purse(1.0, spent=1.0).exhausted
    assert Purse(0.0).exhausted
    assert not Purse(1.0, spent=0.5).exhausted


@given(
    st.floats(0.01, 10),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=60),
)
def test_one_call_at_a_time_overdraws_by_one_call_at_most(cap: float, calls: list[tuple[float, float]]) -> None:
    purse = Purse(cap)
    for least, cost in calls:
        reservation = purse.reserve(least)
        if reservation is None:
            break
        purse.settle(reservation, cost)
    assert purse.spent <= cap + 1.0
