from datetime import UTC, datetime
from typing import Any

import pytest

from passgate.tasks.providers.retry_policy import RetryPolicy, retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


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
