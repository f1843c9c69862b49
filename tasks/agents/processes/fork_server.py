"""The program of the fork server: it imports the agent's module once and forks a process for every trial, which answers
turns until passgate wants no more.

    python -P -m passgate.tasks.agents.processes.fork_server REQUESTS CONTROL MODULE:FUNCTION [VARIABLE...]

REQUESTS and CONTROL are the numbers of inherited sockets. On the first the server sends why the agent cannot be used,
an empty text if it can; then each message that brings three descriptors (the trial's turns, its control and its output)
makes a process. The variables are those that a trial sets.
"""

import asyncio
import atexit
import faulthandler
import gc
import importlib
import inspect
import json
import os
import resource
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.processes.messages import STARTED, TurnReply, TurnRequest
from passgate.tasks.agents.processes.process_tree import fork_with_keeper
from passgate.tasks.agents.transcripts import LONGEST_DETAIL, no_answer, read_transcript, sendable
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.quotes import beginning, end
from passgate.tasks.model.transcript import EndReason, Message

AgentFunction = Callable[[Attempt], Any]
_IMPORT_PER_TRIAL: Final = "-"  # In place of CONTROL: the server has a keeper, and the agent is known to be importable
_DESCRIPTORS: Final = 3
_MOST_FRAMES: Final = 5
_LONGEST_MESSAGE: Final = 1000
_CALLERS: Final = (
    "<frozen importlib",
    *(str(Path(file).parent) for file in (__file__, inspect.getfile(importlib), inspect.getfile(asyncio))),
)  # Where the files begin that call the agent's code


class ImportProblemError(Exception):
    """The function cannot be used; the text says why."""


def main() -> None:
    """Start under a keeper, import the agent and serve."""
    number, control, target, *variables = sys.argv[1:]
    requests = socket.socket(fileno=int(number))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", write_through=True)  # type: ignore[union-attr]
    load: Callable[[], AgentFunction] = partial(import_function, target)
    if control != _IMPORT_PER_TRIAL:
        fork_with_keeper(socket.socket(fileno=int(control)))
        requests.set_inheritable(False)
        try:
            with _watch(variables) as read:
                function = load()
        except ImportProblemError as error:
            requests.send(json.dumps(str(error)).encode())
            return
        if read or threading.active_count() > 1:
            # Threads that the import has started do not survive a fork, and a client that it has made leads to no
            # trial's models: become a server that has not imported the agent.
            requests.set_inheritable(True)
            command = [sys.executable, *sys.orig_argv[1:4], number, _IMPORT_PER_TRIAL, target]
            os.execv(command[0], command)  # noqa: S606 - no shell is wanted
        load = lambda: function  # noqa: E731
    requests.set_inheritable(False)
    requests.send(json.dumps("").encode())
    _serve(requests, load)


@contextmanager
def _watch(variables: Sequence[str]) -> Iterator[set[str]]:
    """Collect which of these environment variables are read while the context lasts."""
    read = set[str]()
    plain = type(os.environ)

    class Watched(plain):  # type: ignore[misc, valid-type]
        def __getitem__(self, key: str) -> str:
            if key in variables:
                read.add(key)
            return str(super().__getitem__(key))

    # The same object, for modules that hold it already.
    os.environ.__class__ = Watched
    try:
        yield read
    finally:
        os.environ.__class__ = plain


def import_function(target: str) -> AgentFunction:
    """Return the function of `MODULE:FUNCTION`, also from the working folder. Raises `ImportProblemError`."""
    module_name, _, function_name = target.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except BaseException as error:  # a module may well exit
        where = "".join(f" ({frame.filename}:{frame.lineno})" for frame in _agent_frames(error)[-1:])
        raise ImportProblemError(f"cannot be imported: {one_line(error)}{where}") from error
    if not callable(function):
        raise ImportProblemError("is not a function")
    return function  # type: ignore[no-any-return]


def one_line(error: BaseException) -> str:
    """Return an exception in one line."""
    text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else repr(error)
    return beginning(sendable(text), _LONGEST_MESSAGE)


def short_traceback(error: BaseException) -> str:
    """Return an exception with the last frames that led to it, the innermost at the end, in `LONGEST_DETAIL`."""
    places = [
        f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
        + (f"\n    {frame.line}" if frame.line else "")
        for frame in _agent_frames(error)[-_MOST_FRAMES:]
    ]
    message, frames = one_line(error), sendable("\n".join(places))
    return f"{message}\n{end(frames, LONGEST_DETAIL - len(message) - 1)}".rstrip()


def _agent_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of the agent, without those that called it."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((n for n, frame in enumerate(frames) if not frame.filename.startswith(_CALLERS)), len(frames))
    return list(frames[first:])


def _serve(requests: socket.socket, load: Callable[[], AgentFunction]) -> None:
    """Answer requests until passgate closes its end. In the process of a trial, answer its turns."""
    del sys.argv[1:]
    gc.freeze()  # What is collected in a fork is copied
    while True:
        message, numbers, _, _ = socket.recv_fds(requests, 1, _DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return
        turns, control = (socket.socket(fileno=number) for number in numbers[:2])
        # Processes of trials that have ended stay in the process table until somebody has asked how they did.
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        _flush()
        with warnings.catch_warnings(), suppress(OSError):  # No room for another process: passgate sees closed sockets
            # Threads of native libraries, which look after themselves.
            warnings.simplefilter("ignore", DeprecationWarning)
            if os.fork() == 0:
                break
        turns.close()
        control.close()
        os.close(numbers[2])
    requests.close()
    fork_with_keeper(control)
    answer_turns(turns, numbers[2], load)


def answer_turns(turns: socket.socket, output: int, load: Callable[[], AgentFunction]) -> None:
    """Read a `TurnRequest` from each line of `turns` and write what came of it; at the end of `turns` end the process.

    What is printed goes to the descriptor `output`.
    """
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    turns.sendall(STARTED)
    with turns, turns.makefile("rb") as requests, asyncio.Runner() as runner:
        for line in requests:
            reply = _answer(TurnRequest.model_validate_json(line), load, runner)
            _flush()
            turns.sendall(reply.model_dump_json().encode() + b"\n")
    # End as a Python process does, but for taking every module apart, which takes ten times as long as a trial.
    threading._shutdown()  # type: ignore[attr-defined] # noqa: SLF001 - waits for threads; nothing public does
    atexit._run_exitfuncs()  # noqa: SLF001
    _flush()
    os._exit(0)


def _answer(request: TurnRequest, load: Callable[[], AgentFunction], runner: asyncio.Runner) -> TurnReply:
    os.environ.update(request.variables)
    said = (Message(role="user", content=request.attempt.prompt),)

    async def wait_for(answer: Awaitable[Any]) -> Any:
        return await answer

    try:
        answer = load()(request.attempt)
        if inspect.isawaitable(answer):
            answer = runner.run(wait_for(answer))
    except MeasurementError as error:
        return TurnReply(transcript=None, message=sendable(str(error)), transient=error.transient)
    except ImportProblemError as error:
        return TurnReply(transcript=no_answer(EndReason.CRASHED, f"the agent {error}", said))
    except BaseException as error:  # noqa: BLE001 - whatever the agent raises is how its turn has ended
        return TurnReply(transcript=no_answer(EndReason.CRASHED, short_traceback(error), said))
    try:
        return TurnReply(transcript=read_transcript(answer))
    except MeasurementError as error:
        return TurnReply(
            transcript=no_answer(EndReason.UNREADABLE, beginning(sendable(str(error)), LONGEST_DETAIL), said)
        )


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        # The agent may have closed or replaced it.
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


if __name__ == "__main__":
    main()
