"""Calls side by side, and a provider that is given up for all of them."""

import asyncio
import contextlib
import time
from dataclasses import replace

import pytest

from passgate.tasks.providers.client import ProviderReply, Upstream, UpstreamError
from tests.unit.providers.asking import failure, send, streamed
from tests.unit.providers.conftest import QUICK
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import (
    SOMETHING,
    Down,
    MalformedJson,
    Reply,
    ResetMidStream,
    Silent,
    Status,
    WrongContentType,
)
from tests.waiting import until


async def test_time_in_the_queue_counts_and_a_cancelled_call_gives_its_turn_back(provider, connect) -> None:
    provider.says(Silent(300))
    upstream = connect()
    calls = [asyncio.create_task(send(upstream)) for _ in range(100)]
    await until(lambda: provider.count >= 64)
    error = await failure(upstream, seconds=0.2)
    assert "0.2 s were over while it was waited for its turn (0 attempts)" in str(error)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert upstream._limiter.in_flight == 0
    provider.says(SOMETHING)
    assert (await send(upstream)).status == 200


async def test_no_more_than_64_calls_are_under_way_at_first(provider, connect) -> None:
    provider.says(Silent(0.3))
    upstream = connect()
    answers = await asyncio.gather(*(send(upstream) for _ in range(80)))
    assert [answer.status for answer in answers] == [200] * 80
    assert provider.most_at_once == 64


async def test_a_provider_that_takes_four_calls_at_once_is_asked_by_four(provider, connect) -> None:
    provider.script = lambda _, __: Status(429) if provider._at_once > 4 else Silent(0.01)
    upstream = connect(retry_policy=replace(QUICK, attempts=30))
    answers = await asyncio.gather(*(send(upstream) for _ in range(300)))
    assert [answer.status for answer in answers] == [200] * 300
    assert upstream._limiter.window.size < 12


DEAD = replace(QUICK, failing_seconds=0.2, probe_every=0.2)


async def test_a_dead_provider_is_given_up_by_everyone_who_waits(provider, connect) -> None:
    provider.says(Down())
    retry_policy = replace(QUICK, first_pause=300, longest_pause=300, failing_seconds=1.5, probe_every=600)
    upstream = connect(retry_policy=retry_policy)
    waiting = [asyncio.create_task(failure(upstream, seconds=600)) for _ in range(60)]
    await until(lambda: provider.count >= 60)
    await asyncio.sleep(1.8)
    assert not any(call.done() for call in waiting)
    begun = time.monotonic()
    errors = [await failure(upstream), *await asyncio.gather(*waiting), await failure(upstream)]
    assert time.monotonic() - begun < 100, "it waited for the pause"
    assert not any(error.transient for error in errors)
    assert "the circuit breaker is open: 61 failures in a row since " in str(errors[-1])
    assert " UTC, the last one: the connection broke" in str(errors[-1])
    assert "(0 attempts)" in str(errors[-1])
    assert provider.count == 61


async def test_a_dead_provider_is_given_up_by_the_queue_too(provider, connect) -> None:
    upstream = connect(silence=0.3, retry_policy=replace(DEAD, first_pause=300, longest_pause=300))
    provider.says(Silent(300))
    begun = time.monotonic()
    errors = await asyncio.gather(*(failure(upstream, seconds=600) for _ in range(200)))
    assert time.monotonic() - begun < 100, "it waited for the pause"
    assert provider.count < 80
    assert not any(error.transient for error in errors)


async def test_a_moment_in_which_everything_breaks_is_not_a_dead_provider(provider, connect) -> None:
    provider.script = lambda number, _: Down() if number < 50 else SOMETHING
    upstream = connect(retry_policy=replace(QUICK, failing_seconds=3))
    answers = await asyncio.gather(*(send(upstream) for _ in range(50)))
    assert [answer.status for answer in answers] == [200] * 50


async def dead(provider: ScriptedUpstream, upstream: Upstream, fault: Reply) -> None:
    provider.says(fault)
    deadline = time.monotonic() + 10
    while (await failure(upstream)).transient:
        assert time.monotonic() < deadline


async def test_one_call_at_a_time_finds_out_whether_a_dead_provider_is_back(provider, connect) -> None:
    upstream = connect(retry_policy=DEAD)
    await dead(provider, upstream, Down())
    await asyncio.sleep(DEAD.probe_every + 0.05)
    before = provider.count
    errors = await asyncio.gather(*(failure(upstream) for _ in range(20)))
    assert provider.count == before + 1
    assert not any(error.transient for error in errors)
    provider.says(SOMETHING)
    assert not (await failure(upstream)).transient
    await asyncio.sleep(DEAD.probe_every + 0.05)
    answers = await asyncio.gather(*(send(upstream) for _ in range(3)), return_exceptions=True)
    assert sum(isinstance(answer, ProviderReply) for answer in answers) == 1
    assert (await send(upstream)).status == 200


@pytest.mark.parametrize("fault", [MalformedJson(), WrongContentType(), Status(500), Status(529)], ids=repr)
async def test_a_provider_that_answers_nonsense_is_dead_too(fault: Reply, provider, connect) -> None:
    await dead(provider, connect(retry_policy=DEAD), fault)


async def test_a_provider_whose_streams_all_break_is_dead(provider, connect) -> None:
    provider.says(ResetMidStream(2))
    upstream = connect(retry_policy=DEAD)
    for _ in range(DEAD.failures_until_open):
        with pytest.raises(UpstreamError, match="the connection broke"):
            await streamed(upstream)
    with pytest.raises(UpstreamError, match="the circuit breaker is open"):
        await streamed(upstream)


@pytest.mark.parametrize("refusal", [Status(429), Status(401), Status(404)], ids=repr)
async def test_a_provider_that_refuses_is_alive(refusal: Reply, provider, connect) -> None:
    provider.says(refusal)
    upstream = connect(retry_policy=replace(QUICK, failing_seconds=0, failures_until_open=2, attempts=2))
    for _ in range(3):
        with contextlib.suppress(UpstreamError):
            await send(upstream)
    provider.says(SOMETHING)
    assert (await send(upstream)).status == 200


async def test_a_provider_that_lets_calls_run_out_of_time_is_dead(provider, connect) -> None:
    provider.says(Silent(300))
    upstream = connect(retry_policy=DEAD)
    *errors, last = [await failure(upstream, seconds=0.1) for _ in range(DEAD.failures_until_open + 1)]
    assert all(error.transient for error in errors)
    assert "the circuit breaker is open" in str(last)
