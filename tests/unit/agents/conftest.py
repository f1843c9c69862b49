"""Real sandboxes for agents to run in."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from tests.builders import a_task

from passgate.tasks.agents.interface import Agent
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.sandboxes.workbench import TrialSandbox, Workbench

OpenSandbox = Callable[..., AbstractAsyncContextManager[TrialSandbox]]


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    return folder


@pytest.fixture
def sandbox_of(suites: Path) -> OpenSandbox:
    @asynccontextmanager
    async def _sandbox(task: EvalTask | None = None) -> AsyncIterator[TrialSandbox]:
        with Workbench(suites, processes=2) as workbench:
            async with workbench.sandbox(task or a_task()) as sandbox:
                yield sandbox

    return _sandbox


@pytest.fixture
def attempt(sandbox_of: OpenSandbox):
    """One trial of an agent in a sandbox of its own."""

    async def _attempt(
        agent: Agent, task: EvalTask | None = None, *, trial: int = 0, seconds: float = 20
    ) -> Transcript:
        task = task or a_task()
        async with sandbox_of(task) as sandbox:
            return await agent.run(task, trial, sandbox, seconds=seconds)

    return _attempt
