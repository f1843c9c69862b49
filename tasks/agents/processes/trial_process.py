"""What the process of a trial does: it answers turns until passgate wants no more."""

import asyncio
import atexit
import faulthandler
import inspect
import os
import resource
import socket
import sys
import threading
from collections.abc import Callable

from passgate.tasks.agents.foreign import sendable
from passgate.tasks.agents.processes.function import AgentFunction, ImportProblemError, awaited, traced
from passgate.tasks.agents.processes.messages import (
    STARTED,
    TurnAnswered,
    TurnCrashed,
    TurnReply,
    TurnRequest,
    TurnUnmeasurable,
)
from passgate.tasks.agents.transcripts import transcript_of
from passgate.tasks.errors import MeasurementError


def answer_turns(turns: socket.socket, output: int, load: Callable[[], AgentFunction]) -> None:
    """Read a `TurnRequest` from each line of `turns` and write what came of it; at the end of `turns` end the process.

    What is printed goes to the descriptor `output`.
    """
    _print_to(output)
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    turns.sendall(STARTED)
    with turns, turns.makefile("rb") as requests, asyncio.Runner() as runner:
        for line in requests:
            reply = _answered(TurnRequest.model_validate_json(line), load, runner)
            _flush()
            turns.sendall(reply.model_dump_json().encode() + b"\n")
    _exit()


def _exit() -> None:
    """End as a Python process does, but for taking every module apart, which takes ten times as long as a trial."""
    threading._shutdown()  # type: ignore[attr-defined] # noqa: SLF001 - waits for threads; nothing public does
    atexit._run_exitfuncs()  # noqa: SLF001
    _flush()
    os._exit(0)


def _print_to(output: int) -> None:
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)


def _answered(request: TurnRequest, load: Callable[[], AgentFunction], runner: asyncio.Runner) -> TurnReply:
    os.environ.update(request.variables)
    try:
        answer = load()(request.attempt)
        if inspect.isawaitable(answer):
            answer = runner.run(awaited(answer))
        return TurnAnswered(transcript=transcript_of(answer))
    except MeasurementError as error:
        return TurnUnmeasurable(message=sendable(str(error)), transient=error.transient)
    except ImportProblemError as error:
        return TurnCrashed(detail=f"the agent {error}")
    except BaseException as error:  # noqa: BLE001 - whatever the agent raises is how its turn has ended
        return TurnCrashed(detail=traced(error))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # the agent may have closed or replaced it
