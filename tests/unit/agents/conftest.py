"""Real sandboxes for agents to run in."""

import secrets
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task

from passgate.tasks.agents.interface import Agent, Attempt
from passgate.tasks.agents.python import PythonAgent
from passgate.tasks.metering.access import ModelAccess, Unmetered
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox
from passgate.tasks.sandboxes.workbench import Workbench

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


def an_attempt(task: EvalTask, sandbox: TrialSandbox, **changes: Any) -> Attempt:
    """The first turn of a trial as an agent is asked for it."""
    plain: dict[str, Any] = {
        "task_id": task.task_id,
        "trial": 0,
        "prompt": task.prompt,
        "inputs": task.inputs,
        "workspace": sandbox.workspace,
        "budgets": task.budgets,
    }
    return Attempt(**(plain | changes))


async def one_turn(
    agent: Agent,
    task: EvalTask,
    sandbox: TrialSandbox,
    *,
    seconds: float = 20,
    access: ModelAccess | None = None,
    **changes: Any,
) -> Transcript:
    """A turn of an agent in this sandbox; `changes` are fields of its `Attempt`."""
    asked = an_attempt(task, sandbox, **changes)
    return await agent.run(task, asked, sandbox.for_the_agent, access or Unmetered(), seconds=seconds)


@pytest.fixture
def attempt(sandbox_of: OpenSandbox):
    """One trial of an agent in a sandbox of its own."""

    async def _attempt(agent: Agent, task: EvalTask | None = None, **changes: Any) -> Transcript:
        task = task or a_task()
        asked = {"session": secrets.token_hex(8)} | changes
        async with sandbox_of(task) as sandbox:
            try:
                return await one_turn(agent, task, sandbox, **asked)
            finally:
                await agent.end_session(asked["session"])

    return _attempt


@pytest.fixture
def python_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], PythonAgent]]:
    """Agents from the source of their module, whose function is `answer`; the working folder is where it lies."""
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:

        def _agent(source: str) -> PythonAgent:
            (tmp_path / "agent_under_test.py").write_text(textwrap.dedent(source), encoding="utf-8")
            agent = PythonAgent.from_spec(AgentSpec(kind=AgentKind.PYTHON, target="agent_under_test:answer"), Path())
            stack.callback(agent.close)
            return agent

        yield _agent
