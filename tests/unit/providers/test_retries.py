import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from passgate.tasks.providers.retries import Breaker, RetryPolicy, retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
RETRY_POLICY = RetryPolicy(failures_until_open=3, failing_seconds=2, probe_every=5)


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(RETRY_POLICY, clock)


@pytest.fixture
def opened(breaker: Breaker, clock: Clock) -> Breaker:
    """A breaker after its third failure."""
    breaker.record_failure("it answered 500")
    clock.now += 2
    breaker.record_failure("it answered 500")
    assert breaker.record_failure("it answered 502")
    return breaker


def test_two_failures_are_too_few_however_far_apart(breaker: Breaker, clock: Clock) -> None:
    breaker.record_failure("down")
    clock.now += 3600
    assert not breaker.record_failure("down")
    assert breaker.admits()


def test_a_success_begins_the_count_again(breaker: Breaker, clock: Clock) -> None:
    breaker.record_failure("down")
    breaker.record_failure("down")
    breaker.record_success()
    clock.now += 10
    assert [breaker.record_failure("down") for _ in range(3)] == [False] * 3
    clock.now += 2
    assert breaker.record_failure("down")


def test_silence_counts_as_failing(breaker: Breaker) -> None:
    assert [breaker.record_failure("silent", silence=300) for _ in range(3)] == [False, False, True]


def test_while_it_is_open_one_call_goes_through_now_and_then(opened: Breaker, clock: Clock) -> None:
    clock.now += 4.9
    assert not opened.admits()
    clock.now += 0.1
    assert [opened.admits() for _ in range(3)] == [True, False, False]


def test_it_says_since_when_and_why_it_is_open(opened: Breaker) -> None:
    begin, _time, end = re.split(r"(\d\d:\d\d:\d\d)", str(opened.reason))
    assert begin == "the circuit breaker is open: 3 failures in a row since "
    assert end == " UTC, the last one: it answered 502; one call tries again every 5 s"


def test_pauses_double_up_to_the_longest() -> None:
    assert [RetryPolicy().pause(attempt, 1) for attempt in range(1, 8)] == [0.5, 1, 2, 4, 8, 8, 8]
    assert [RetryPolicy().pause(attempt, 0) for attempt in range(1, 6)] == [0.25, 0.5, 1, 2, 4]
    assert RetryPolicy().pause(10_000, 1) == 8


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "9", "retry-after-ms": "soon"}, 9),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:20 GMT"}, 20),
        ({"retry-after": "Sunday, 01-Mar-26 12:00:20 GMT"}, 20),
        ({"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:20 GMT", "date": "Sun, 01 Mar 2026 12:00:15 GMT"}, 5),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:20 -0000"}, 20),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Sun, 99 Mar 2026 12:00:20 GMT"}, None),
    ],
)
def test_the_pause_that_is_asked_for(headers: dict[str, str], seconds: Any) -> None:
    assert retry_after(headers, NOW) == seconds
