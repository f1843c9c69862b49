"""The function that `python:MODULE:FUNCTION` names, as its own process has it."""

import asyncio
import importlib
import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from passgate.tasks.agents.foreign import sendable
from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.processes.messages import MAX_DETAIL

AgentFunction = Callable[[Attempt], Any]
_MOST_FRAMES: Final = 5
_LONGEST_MESSAGE: Final = 1000
_CALLERS: Final = (
    "<frozen importlib",
    *(str(Path(file).parent) for file in (__file__, inspect.getfile(importlib), inspect.getfile(asyncio))),
)
"""Where the files begin that call the agent's code."""


class ImportProblemError(Exception):
    """The function cannot be had; the text says why."""


def import_function(target: str) -> AgentFunction:
    """The function of `MODULE:FUNCTION`, also from the working folder. Raises `ImportProblemError`."""
    module_name, _, function_name = target.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except BaseException as error:  # a module may well exit
        raise ImportProblemError(f"cannot be imported: {described(error)}{_place(error)}") from error
    if not callable(function):
        raise ImportProblemError("is not a function")
    return function  # type: ignore[no-any-return]


def described(error: BaseException) -> str:
    """An exception in one line."""
    text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else repr(error)
    return sendable(text)[:_LONGEST_MESSAGE]


def traced(error: BaseException) -> str:
    """An exception with the last frames that led to it, the innermost at the end; at most `MAX_DETAIL` characters."""
    frames = "\n".join(map(_shown, _frames(error)[-_MOST_FRAMES:]))
    room = MAX_DETAIL - len(described(error)) - 1
    return f"{described(error)}\n{sendable(frames)[-room:]}".rstrip()


def _shown(frame: traceback.FrameSummary) -> str:
    place = f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
    return f"{place}\n    {frame.line}" if frame.line else place


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The frames of the agent, without those that called it."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((n for n, frame in enumerate(frames) if not frame.filename.startswith(_CALLERS)), len(frames))
    return list(frames[first:])


def _place(error: BaseException) -> str:
    frames = _frames(error)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


async def awaited(answer: Awaitable[Any]) -> Any:
    """The answer of whatever can be awaited, as a coroutine."""
    return await answer
