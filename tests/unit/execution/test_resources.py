"""Standstills of this process, and whose fault a time-out is then."""

import asyncio
import time

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.execution import resources
from passgate.tasks.execution.resources import noticed_standstills
from passgate.tasks.model.transcript import EndReason, Transcript

LATE = Transcript(end=EndReason.TIMED_OUT)


async def test_a_time_out_says_nothing_if_the_process_stood_still_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_NOTICED_SECONDS", 2.0)
    async with noticed_standstills() as noticed:
        started = time.monotonic()
        await noticed.refuse_time_out(LATE, started)
        await asyncio.sleep(0)
        time.sleep(3)
        await noticed.refuse_time_out(Transcript(), started)
        with pytest.raises(MeasurementError, match=r"stood still for [23] s while the agent ran"):
            await noticed.refuse_time_out(LATE, started)
        await noticed.refuse_time_out(LATE, time.monotonic())
