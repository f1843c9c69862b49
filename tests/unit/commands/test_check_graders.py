"""What is going on while graders are proved, and what is left of it."""

import asyncio
import time
from pathlib import Path

import pytest

from passgate.tasks.commands.check_graders import check_graders
from passgate.tasks.errors import UsageError
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import EvalTask
from tests.builders import a_policy, a_task
from tests.processes import marked_processes
from tests.waiting import until


def described(suites: Path, name: str, description: str) -> EvalTask:
    """A task of its own in a named sandbox."""
    folder = suites / "_shared/sandboxes" / name
    folder.mkdir(parents=True)
    (folder / "sandbox.yaml").write_text(description)
    return a_task(task_id=name, sandbox=name)


def running_tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_when_it_is_called_off_nothing_goes_on(tmp_path: Path) -> None:
    word = str(time.time_ns())
    tasks = [described(tmp_path, name, f"setup: ['sleep 60{word}']\n") for name in ("a", "b")]
    checking = asyncio.ensure_future(check_graders({tmp_path: tasks}, a_policy(), PriceTable()))
    await until(lambda: len(marked_processes(word)) > 1)
    checking.cancel()
    await asyncio.wait([checking])
    assert checking.cancelled()
    assert running_tasks() == set()
    assert marked_processes(word) == []


async def test_when_a_sandbox_cannot_be_used_nothing_goes_on(tmp_path: Path) -> None:
    slow = described(tmp_path, "slow", "reset: [sleep 60]\n")
    broken = described(tmp_path, "broken", "setup: 3\n")
    with pytest.raises(ExceptionGroup) as raised:
        await check_graders({tmp_path: [slow, broken]}, a_policy(), PriceTable())
    assert raised.group_contains(UsageError, match="not a sandbox description")
    assert running_tasks() == set()
