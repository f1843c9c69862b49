"""Calls side by side, and a provider that is given up for all of them."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from passgate.tasks.providers.client import ProviderReply, Upstream, UpstreamError
from tests.unit.conftest import LONG, LoopClock
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
from tests.waiting import LIMIT, until


async def test_64_calls_are_under_way_at_first_and_time_in_the_queue_counts(provider, connect) -> None:
    provider.says(Silent(LONG))
    upstream = connect()
    calls = [asyncio.create_task(send(upstream)) for _ in range(100)]
    await until(lambda: provider.count >= 64)
    error = await failure(upstream, seconds=0.2)
    assert "0.2 s were over while waiting for its turn (0 attempts)" in str(error)
    assert (upstream._limiter.in_flight, provider.count) == (64, 64)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert upstream._limiter.in_flight == 0, "a cancelled call gives its turn back"
    provider.says(SOMETHING)
    answers = await asyncio.gather(*(send(upstream) for _ in range(80)))
    assert [answer.status for answer in answers] == [200] * 80


async def test_a_provider_that_takes_four_calls_at_once_is_asked_by_four(provider, connect) -> None:
    upstream = connect(retry_policy=replace(QUICK, attempts=30))
    provider.script = lambda _, __: Status(429) if upstream._limiter.in_flight > 4 else SOMETHING
    answers = await asyncio.gather(*(send(upstream) for _ in range(150)))
    assert [answer.status for answer in answers] == [200] * 150
    assert upstream._limiter.window.size < 12


DEAD = replace(QUICK, failing_seconds=LONG, probe_every=LONG)
PAUSING = replace(QUICK, first_pause=300 * LONG, longest_pause=300 * LONG, failing_seconds=LONG, probe_every=600 * LONG)


async def test_a_dead_provider_is_given_up_by_everyone_who_waits(provider, connect, clock: LoopClock) -> None:
    provider.says(Down())
    upstream = connect(retry_policy=PAUSING)
    waiting = [asyncio.create_task(failure(upstream, seconds=600 * LONG)) for _ in range(60)]
    await until(lambda: upstream._breaker._failures == 60)
    clock.forward()
    await asyncio.sleep(0)
    assert not any(call.done() for call in waiting)
    async with asyncio.timeout(LIMIT):
        errors = [await failure(upstream), *await asyncio.gather(*waiting), await failure(upstream)]
    assert not any(error.transient for error in errors)
    assert "the circuit breaker is open: 61 failures in a row since " in str(errors[-1])
    assert " UTC, the last one: the connection broke" in str(errors[-1])
    assert "(0 attempts)" in str(errors[-1])
    assert provider.count == 61


async def test_a_dead_provider_is_given_up_by_the_queue_too(provider, connect) -> None:
    upstream = connect(silence=0.3, retry_policy=replace(PAUSING, failing_seconds=0.2))
    provider.says(Silent(LONG))
    async with asyncio.timeout(LIMIT):
        errors = await asyncio.gather(*(failure(upstream, seconds=600 * LONG) for _ in range(200)))
    assert provider.count < 80
    assert not any(error.transient for error in errors)


async def test_a_moment_in_which_everything_breaks_is_not_a_dead_provider(provider, connect) -> None:
    provider.script = lambda number, _: Down() if number < 50 else SOMETHING
    upstream = connect(retry_policy=replace(QUICK, attempts=50, failing_seconds=LONG))
    answers = await asyncio.gather(*(send(upstream) for _ in range(50)))
    assert [answer.status for answer in answers] == [200] * 50


async def dead(provider: ScriptedUpstream, upstream: Upstream, fault: Reply, clock: LoopClock) -> None:
    provider.says(fault)
    assert (await failure(upstream)).transient
    clock.forward()
    assert not (await failure(upstream)).transient


async def test_one_call_at_a_time_finds_out_whether_a_dead_provider_is_back(
    provider, connect, clock: LoopClock
) -> None:
    upstream = connect(retry_policy=DEAD)
    await dead(provider, upstream, Down(), clock)
    clock.forward()
    before = provider.count
    errors = await asyncio.gather(*(failure(upstream) for _ in range(20)))
    assert provider.count == before + 1
    assert not any(error.transient for error in errors)
    provider.says(SOMETHING)
    assert not (await failure(upstream)).transient
    clock.forward()
    answers = await asyncio.gather(*(send(upstream) for _ in range(3)), return_exceptions=True)
    assert sum(isinstance(answer, ProviderReply) for answer in answers) == 1
    assert (await send(upstream)).status == 200


@pytest.mark.parametrize("fault", [MalformedJson(), WrongContentType(), Status(500), Status(529)], ids=repr)
async def test_a_provider_that_answers_nonsense_is_dead_too(fault: Reply, provider, connect, clock) -> None:
    await dead(provider, connect(retry_policy=DEAD), fault, clock)


async def test_a_provider_whose_streams_all_break_is_dead(provider, connect, clock: LoopClock) -> None:
    provider.says(ResetMidStream(2))
    upstream = connect(retry_policy=DEAD)
    for _ in range(DEAD.failures_until_open):
        clock.forward()
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
    provider.says(Silent(LONG))
    upstream = connect(retry_policy=replace(DEAD, failing_seconds=0.05))
    *errors, last = [await failure(upstream, seconds=0.02) for _ in range(DEAD.failures_until_open + 1)]
    assert all(error.transient for error in errors)
    assert "the circuit breaker is open" in str(last)
