"""Trials as conversations in real sandboxes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.builders import a_task
from tests.function_agent import FunctionAgent

from passgate.tasks.agents.conversation import converse
from passgate.tasks.agents.interface import Agent, Attempt
from passgate.tasks.metering.access import ModelAccess, Unmetered
from passgate.tasks.model.grade import LlmJudge
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript


@pytest.fixture
def talk(sandbox_of):
    """A trial's conversation in a sandbox of its own."""

    async def _talk(
        agent: Agent | Callable[[Attempt], Any],
        task: EvalTask | None = None,
        *,
        access: ModelAccess | None = None,
        user: LlmJudge | None = None,
        trial: int = 0,
        seconds: float = 20,
        grace: float = 5.0,
    ) -> Transcript:
        task = task or a_task()
        chosen = agent if hasattr(agent, "run") else FunctionAgent(agent)
        async with sandbox_of(task) as sandbox:
            said = await converse(
                chosen, task, trial, sandbox, access or Unmetered(), user, seconds=seconds, grace=grace
            )
            return said.checked()

    return _talk


def words(transcript: Transcript) -> list[str]:
    return [f"{message.role}: {message.content}" for message in transcript.messages]


class Listener:
    """An agent that repeats what it is told, and keeps how it was asked."""

    def __init__(self, pause: float = 0.0) -> None:
        self.attempts: list[Attempt] = []
        self._pause = pause

    async def __call__(self, attempt: Attempt) -> str:
        self.attempts.append(attempt)
        await asyncio.sleep(self._pause)
        return f"You said {attempt.prompt}"


SCRIPTED = a_task(inputs={"prompt": "one", "order": 7}, user={"says": ["two", "three"]})
