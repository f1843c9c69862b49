"""Trials as conversations in real sandboxes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.builders import a_task
from tests.function_agent import FunctionAgent

from passgate.tasks.agents import conversation
from passgate.tasks.agents.conversation import converse
from passgate.tasks.agents.interface import Agent, Attempt
from passgate.tasks.metering.access import Unmetered
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript


@pytest.fixture
def talk(sandbox_of):
    """A trial's conversation in a sandbox of its own."""

    async def _talk(
        agent: Agent | Callable[[Attempt], Any],
        task: EvalTask | None = None,
        *,
        access=None,
        user=None,
        trial=0,
        **limits,
    ) -> Transcript:
        task = task or a_task()
        chosen = agent if hasattr(agent, "run") else FunctionAgent(agent)
        limits = {"seconds": 240, **limits}
        async with sandbox_of(task) as sandbox:
            return (await converse(chosen, task, trial, sandbox, access or Unmetered(), user, **limits)).result()

    return _talk


@dataclass
class Watch:
    """The clock that conversations read. It stands still until a test puts it forward."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    made = Watch()
    monkeypatch.setattr(conversation, "time", made)
    return made


def words(transcript: Transcript) -> list[str]:
    return [f"{message.role}: {message.content}" for message in transcript.messages]


def listened(*texts: str) -> list[str]:
    """The words of a conversation in which a user says this to a `Listener`."""
    return [line for text in texts for line in (f"user: {text}", f"assistant: You said {text}")]


class Listener:
    """An agent that repeats what it is told, and keeps how it was asked."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []

    def __call__(self, attempt: Attempt) -> str:
        self.attempts.append(attempt)
        return f"You said {attempt.prompt}"


SCRIPTED = a_task(inputs={"prompt": "one", "order": 7}, user={"says": ["two", "three"]})
