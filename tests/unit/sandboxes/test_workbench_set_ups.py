"""Trials that are called off while their sandbox is being prepared."""

import asyncio
import gc
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.conftest import Marked
from tests.unit.sandboxes.conftest import left_in
from tests.waiting import until

from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox, new_sandbox
from passgate.tasks.sandboxes.workbench import Workbench

NOTES = a_task(sandbox="notes")


async def called_off(workbench: Workbench, when: Callable[[], object]) -> asyncio.Task[None]:
    """Begin a trial and call it off as soon as something holds, while its sandbox is being prepared."""

    async def trial() -> None:
        async with workbench.sandbox(NOTES):
            pytest.fail("the trial must not begin")

    running = asyncio.create_task(trial())
    await until(when)
    running.cancel()
    return running


def running_tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_a_set_up_that_nobody_waits_for_is_ended_before_the_folder_goes(
    isolation: str, describe, workbench_of, temporary: Path, marked: Marked
) -> None:
    describe(description=f"setup: ['sleep 600 # {marked.word}']\n")
    async with workbench_of() as workbench:
        await asyncio.wait([await called_off(workbench, lambda: marked.running)])
        assert running_tasks(), "another trial may want it yet"
    assert running_tasks() == set()
    await marked.are_gone()
    assert left_in(temporary) == []


async def test_what_comes_of_a_set_up_that_nobody_waits_for_troubles_nobody(
    describe, workbench_of, temporary: Path
) -> None:
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    describe(description="setup: ['touch begun; while [ ! -e end ]; do sleep 0.02; done; exit 3']\n")
    async with workbench_of() as workbench:
        await asyncio.wait([await called_off(workbench, lambda: list(temporary.rglob("begun")))])
        (begun,) = temporary.rglob("begun")
        begun.with_name("end").touch()
        await until(lambda: not running_tasks())
    del workbench
    gc.collect()
    assert told == []


async def test_a_folder_goes_only_when_nothing_is_copied_to_it_any_more(
    describe, workbench_of, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe()
    begun, may_go_on = threading.Event(), threading.Event()

    def slowly(*arguments: object, **options: object) -> TrialSandbox:
        begun.set()
        may_go_on.wait(240)
        return new_sandbox(*arguments, **options)

    monkeypatch.setattr("passgate.tasks.sandboxes.workbench.new_sandbox", slowly)
    workbench = await workbench_of().__aenter__()
    await asyncio.wait([await called_off(workbench, begun.is_set)])
    closing = asyncio.create_task(workbench.__aexit__())
    await asyncio.wait([closing], timeout=0.1)
    is_over_too_soon = closing.done()
    may_go_on.set()
    await closing
    assert not is_over_too_soon
    assert left_in(temporary) == []
