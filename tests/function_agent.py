"""A function of a test as an agent, called in the test's own process."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from passgate.tasks.agents.interface import Agent, AgentSandbox, Attempt
from passgate.tasks.agents.transcripts import read_transcript
from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.access import ModelAccess
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Message, Transcript


class FunctionAgent(Agent):
    """Gives what the function gives, sync or async: the answer as text, or a transcript."""

    def __init__(self, function: Callable[[Attempt], Any]) -> None:
        self._function = function

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        """See `Agent.run`."""
        try:
            async with asyncio.timeout(seconds):
                answer = self._function(attempt)
                return read_transcript(await answer if inspect.isawaitable(answer) else answer)
        except MeasurementError:
            raise
        except TimeoutError:
            return _ended(attempt, EndReason.TIMED_OUT, "")
        except Exception as error:  # noqa: BLE001 - as of a real agent: a crash
            return _ended(attempt, EndReason.CRASHED, f"{type(error).__name__}: {error}")


def _ended(attempt: Attempt, end: EndReason, detail: str) -> Transcript:
    asked = Message(role="user", content=attempt.prompt)
    return Transcript(messages=(asked,), complete=False, end=end, detail=detail)
