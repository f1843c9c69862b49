"""A Python function as an agent: `python:MODULE:FUNCTION`, sync or async."""

import asyncio
import importlib
import inspect
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

from passgate.tasks.agents.foreign import sendable
from passgate.tasks.agents.interface import AgentSandbox, Attempt
from passgate.tasks.agents.scoped import Scope, ScopedThreads, prepare_process
from passgate.tasks.agents.transcripts import transcript_of
from passgate.tasks.agents.variables import leading_to_models
from passgate.tasks.budgets.access import ModelAccess
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Message, Transcript

_DETAIL = 2000


class PythonAgent:
    """Calls a function with an `Attempt`; it gives its answer as text, or a transcript.

    Async functions share an event loop of their own and sync ones get a thread each, so that an agent that blocks
    holds up neither passgate nor its time limit. A thread that has run out of time cannot be ended: it is left.
    While it runs, its trial's way to the models is in `os.environ`, and what it prints is kept for its trial.
    """

    def __init__(self, function: Callable[[Attempt], Any]) -> None:
        self._function = function
        self._loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def from_target(cls, target: str) -> Self:
        """Import `MODULE:FUNCTION`, also from the working folder. Raises `UsageError`."""
        module_name, _, function_name = target.partition(":")
        if not module_name or not function_name:
            raise UsageError(f"the agent python:{target} needs the form python:MODULE:FUNCTION")
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        prepare_process()  # before the import: handlers of `logging` keep the stream that they find
        try:
            function = getattr(importlib.import_module(module_name), function_name)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(f"the agent python:{target} cannot be imported: {reason}") from error
        if not callable(function):
            raise UsageError(f"the agent python:{target} is not a function")
        return cls(function)

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        """See `Agent.run`."""
        wanted = {**os.environ, **sandbox.variables}
        scope = Scope({**sandbox.variables, **leading_to_models(wanted, access)})
        transcript = await self._answered(attempt, scope, seconds)
        return transcript.model_copy(update={"printed": scope.printed}) if scope.printed else transcript

    async def _answered(self, attempt: Attempt, scope: Scope, seconds: float) -> Transcript:
        answer = asyncio.wrap_future(self._call(attempt, scope))
        try:
            done, _ = await asyncio.wait([answer], timeout=seconds)
        finally:
            answer.cancel()
        if not done:
            return _ended(attempt, EndReason.TIMED_OUT, "")
        if answer.cancelled():
            return _ended(attempt, EndReason.CRASHED, "it cancelled itself")
        error = answer.exception()
        if error is None:
            return transcript_of(answer.result())
        if isinstance(error, MeasurementError):
            raise error
        return _ended(attempt, EndReason.CRASHED, f"{type(error).__name__}: {error}"[:_DETAIL])

    def _call(self, attempt: Attempt, scope: Scope) -> "Future[Any]":
        if inspect.iscoroutinefunction(self._function):
            coroutine = _contained(self._function, attempt, scope)
            return asyncio.run_coroutine_threadsafe(coroutine, self._own_loop())
        future: Future[Any] = Future()
        threading.Thread(target=_into, args=(future, self._function, attempt, scope), daemon=True).start()
        return future

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(ScopedThreads(thread_name_prefix="agents"))
            threading.Thread(target=self._loop.run_forever, daemon=True, name="agents").start()
        return self._loop


async def _contained(function: Callable[[Attempt], Coroutine[Any, Any, Any]], attempt: Attempt, scope: Scope) -> Any:
    """The agent's answer. An exit of the agent must not end the loop that all agents share."""
    try:
        with scope.entered():
            return await function(attempt)
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(repr(error)) from error


def _into(future: "Future[Any]", function: Callable[[Attempt], Any], attempt: Attempt, scope: Scope) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        with scope.entered():
            answer = function(attempt)
            if inspect.isawaitable(answer):
                answer = asyncio.run(_awaited(answer))
        future.set_result(answer)
    except BaseException as error:  # noqa: BLE001 - handed on to whoever waits, SystemExit of the agent too
        future.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))


async def _awaited(answer: Awaitable[Any]) -> Any:
    """The answer of a callable that is async without saying so, as an object with an async `__call__` is."""
    return await answer


def _ended(attempt: Attempt, end: EndReason, detail: str) -> Transcript:
    asked = Message(role="user", content=attempt.prompt)
    return Transcript(messages=(asked,), complete=False, end=end, detail=sendable(detail))
