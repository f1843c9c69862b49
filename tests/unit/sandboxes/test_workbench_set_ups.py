"""Trials that are called off while their sandbox is being prepared."""

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.sandboxes.conftest import left_in, marked, until

from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox, new_sandbox
from passgate.tasks.sandboxes.workbench import Workbench

NOTES = a_task(sandbox="notes")


async def called_off(workbench: Workbench, when: Callable[[], bool]) -> None:
    """Begin a trial and call it off as soon as something holds, while its sandbox is being prepared."""

    async def trial() -> None:
        async with workbench.sandbox(NOTES):
            pytest.fail("the trial must not begin")

    running = asyncio.ensure_future(trial())
    assert await until(when)
    running.cancel()
    await asyncio.wait([running])


def running_tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_a_set_up_that_nobody_waits_for_is_ended_before_the_folder_goes(
    isolation: str, describe, workbench_of, temporary: Path
) -> None:
    word = str(time.time_ns())
    describe(description=f"setup: ['sleep 60{word}']\n")
    async with workbench_of() as workbench:
        await called_off(workbench, lambda: marked(word) != [])
        assert running_tasks(), "another trial may want it yet"
    assert running_tasks() == set()
    assert await until(lambda: marked(word) == [])
    assert left_in(temporary) == []


async def test_what_comes_of_a_set_up_that_nobody_waits_for_troubles_nobody(describe, workbench_of) -> None:
    word, told = str(time.time_ns()), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    describe(description=f"setup: ['sleep 0.5; exit 3 # {word}']\n")
    async with workbench_of() as workbench:
        await called_off(workbench, lambda: marked(word) != [])
        assert await until(lambda: not running_tasks())
    del workbench
    gc.collect()
    assert told == []


async def test_a_folder_goes_only_when_nothing_is_copied_to_it_any_more(
    describe, workbench_of, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe()
    begun = threading.Event()

    def slowly(*arguments: object, **options: object) -> TrialSandbox:
        begun.set()
        time.sleep(0.5)
        return new_sandbox(*arguments, **options)

    monkeypatch.setattr("passgate.tasks.sandboxes.workbench.new_sandbox", slowly)
    async with workbench_of() as workbench:
        await called_off(workbench, begun.is_set)
    await asyncio.get_running_loop().shutdown_default_executor()
    assert left_in(temporary) == []
