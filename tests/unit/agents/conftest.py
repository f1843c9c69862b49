"""Real sandboxes for agents to run in."""

import secrets
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.conftest import LONG, LoopClock, OpenSandbox

from passgate.tasks.agents.interface import Agent, Attempt
from passgate.tasks.agents.python import PythonAgent
from passgate.tasks.metering.access import ModelAccess, Unmetered
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox


class Metered(Unmetered):
    """What an agent is told of a meter that nobody calls."""

    def __init__(self, **variables: str) -> None:
        super().__init__()
        self.variables = {"OPENAI_BASE_URL": "http://127.0.0.1:1/t", "OPENAI_API_KEY": "of-the-trial"} | variables


def an_attempt(task: EvalTask, workspace: Path = Path("/nowhere"), **changes: Any) -> Attempt:
    """The first turn of a trial as an agent is asked for it."""
    of_the_task = {name: getattr(task, name) for name in ("task_id", "prompt", "inputs", "budgets")}
    return Attempt(**{"trial": 0, "workspace": workspace, **of_the_task, **changes})


async def one_turn(
    agent: Agent,
    task: EvalTask,
    sandbox: TrialSandbox,
    *,
    seconds: float = 240,
    access: ModelAccess | None = None,
    **changes: Any,
) -> Transcript:
    """A turn of an agent in this sandbox; `changes` are fields of its `Attempt`."""
    asked = an_attempt(task, sandbox.workspace, **changes)
    return await agent.run(task, asked, sandbox.for_the_agent, access or Unmetered(), seconds=seconds)


@pytest.fixture
def attempt(sandbox_of: OpenSandbox, clock: LoopClock):
    """One trial of an agent in a sandbox of its own; where it `hangs`, its time is over once it made the file `ready`
    in its workspace.
    """

    async def _attempt(agent: Agent, task: EvalTask | None = None, *, hangs: bool = False, **changes: Any):
        task = task or a_task()
        asked = {"session": secrets.token_hex(8)} | changes
        async with sandbox_of(task) as sandbox:
            try:
                if hangs:
                    turn = one_turn(agent, task, sandbox, seconds=LONG, **asked)
                    return await clock.run_out(turn, (sandbox.workspace / "ready").exists)
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
            return stack.enter_context(started("agent_under_test:answer"))

        yield _agent


RUNS_ITS_PROMPT = """
import asyncio, atexit, ctypes, json, os, pathlib, random, signal, subprocess, sys, textwrap, threading, time
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.transcript import Message, ToolCall, Transcript

def answer(attempt):
    exec("def work(attempt):\\n" + textwrap.indent(attempt.prompt, "    "), globals())
    return work(attempt)

async def later(attempt):
    exec("async def work(attempt):\\n" + textwrap.indent(attempt.prompt, "    "), globals())
    return await work(attempt)
"""


@contextmanager
def started(target: str) -> Iterator[PythonAgent]:
    """The agent of a function, ended with the context."""
    with closing(PythonAgent.from_spec(AgentSpec(kind=AgentKind.PYTHON, target=target), Path())) as agent:
        yield agent


@pytest.fixture(scope="session")
def code_agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, PythonAgent]]:
    """Agents that take their prompt for the body of their function, by how that is defined."""
    folder = tmp_path_factory.mktemp("agents")
    (folder / "runs_its_prompt.py").write_text(RUNS_ITS_PROMPT, encoding="utf-8")
    with ExitStack() as stack:
        with chdir(folder):
            plain, waiting = (stack.enter_context(started(f"runs_its_prompt:{name}")) for name in ("answer", "later"))
        yield {"def": plain, "async def": waiting}


@pytest.fixture
def run_code(attempt, code_agents: dict[str, PythonAgent]):
    """One trial of a Python agent whose function has this body."""

    async def _run_code(body: str, *, define: str = "def", **changes: Any) -> Transcript:
        return await attempt(code_agents[define], prompt=textwrap.dedent(body), **changes)

    return _run_code
