"""What holds of calls to providers whatever the numbers and texts are."""

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import h11
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.providers.calls import headers_out
from passgate.tasks.providers.concurrency import LEAST, MOST, Window
from passgate.tasks.providers.retries import RetryPolicy, retry_after

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
PAUSES = st.floats(0.001, 100)


@given(PAUSES, PAUSES, st.integers(1, 10_000), st.floats(0, 1))
def test_a_pause_is_never_longer_than_the_longest(first: float, longest: float, attempt: int, chance: float) -> None:
    retry_policy = RetryPolicy(first_pause=first, longest_pause=longest)
    pause = retry_policy.pause(attempt, chance)
    assert min(first, longest) / 2 <= pause <= longest
    assert retry_policy.pause(attempt + 1, chance) >= pause


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "date"]), st.text()))
def test_no_text_makes_the_asked_pause_anything_but_a_time(headers: dict[str, str]) -> None:
    pause = retry_after(headers, NOW)
    assert pause is None or (math.isfinite(pause) and pause >= 0)


@given(st.integers(0, 10**6))
def test_seconds_and_a_date_ask_for_the_same_pause(seconds: int) -> None:
    date = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after({"retry-after": str(seconds)}, NOW) == retry_after({"retry-after": date}, NOW) == seconds


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 400), st.integers(0, 3))))
def test_a_window_keeps_its_bounds_and_shrinks_once_per_round_trip(events: list[tuple[bool, int, int]]) -> None:
    window = Window()
    for succeeded, in_flight, rounds_ago in events:
        before, epoch = window.size, window.epoch
        if succeeded:
            window.grow(in_flight)
            assert before <= window.size <= before + 1
        else:
            window.shrink(in_flight, epoch - rounds_ago)
            assert window.size < before or rounds_ago or before == LEAST
            assert window.size == before or not rounds_ago
        assert LEAST <= window.size <= MOST


@given(st.dictionaries(st.text(), st.text()), st.booleans())
def test_whatever_headers_an_agent_sends_the_request_is_well_formed(passed: dict[str, str], has_key: bool) -> None:
    headers = headers_out([(b"host", b"models.example")], passed, length=0, has_key=has_key)
    h11.Connection(h11.CLIENT).send(h11.Request(method="POST", target="/v1", headers=headers))
    assert [name for name, _ in headers].count(b"host") == 1
