"""The program of the fork server: it imports the agent's module once and forks a process for every trial, which answers
turns until passgate wants no more.

    python -P -m passgate.tasks.agents.processes.fork_server REQUESTS CONTROL MODULE:FUNCTION [VARIABLE...]

REQUESTS and CONTROL are the numbers of inherited sockets. On the first the server sends one `ImportReport`; then each
message that brings three descriptors (the trial's turns, its control and its output) makes a process. The variables
are those that a trial sets.
"""

import asyncio
import atexit
import faulthandler
import gc
import importlib
import inspect
import os
import resource
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.processes.messages import (
    MAX_DETAIL,
    STARTED,
    ImportReport,
    TurnAnswered,
    TurnCrashed,
    TurnReply,
    TurnRequest,
    TurnUnmeasurable,
    TurnUnreadable,
)
from passgate.tasks.agents.processes.process_tree import fork_kept
from passgate.tasks.agents.transcripts import sendable, transcript_of
from passgate.tasks.errors import MeasurementError

_DESCRIPTORS: Final = 3
_IMPORT_LATE: Final = "from passgate.tasks.agents.processes.fork_server import import_late; import_late()"
AgentFunction = Callable[[Attempt], Any]
_MOST_FRAMES: Final = 5
_LONGEST_MESSAGE: Final = 1000
_CALLERS: Final = (
    "<frozen importlib",
    *(str(Path(file).parent) for file in (__file__, inspect.getfile(importlib), inspect.getfile(asyncio))),
)  # Where the files begin that call the agent's code


def main() -> None:
    """Start under a keeper, import the agent and serve."""
    requests, control = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    target = sys.argv[3]
    fork_kept(control)
    requests.set_inheritable(False)
    _write_all_characters()
    try:
        with _reads(sys.argv[4:]) as read:
            function = import_function(target)
    except ImportProblemError as error:
        requests.send(ImportReport(problem=str(error)).model_dump_json().encode())
        return
    if read or threading.active_count() > 1:
        # Threads that the import has started do not survive a fork, and a client that it has made leads to no trial's
        # models: become a server that has not imported the agent.
        requests.set_inheritable(True)
        command = [sys.executable, "-P", "-c", _IMPORT_LATE, str(requests.fileno()), target]
        os.execv(command[0], command)  # noqa: S606 - no shell is wanted
    requests.send(ImportReport().model_dump_json().encode())
    _serve(requests, lambda: function)


@contextmanager
def _reads(variables: Sequence[str]) -> Iterator[set[str]]:
    """Which of some environment variables are read while the context lasts."""
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


def import_late() -> None:
    """Serve such that every process imports the agent itself; the agent is known to be importable."""
    _write_all_characters()
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.set_inheritable(False)
    target = sys.argv[2]
    requests.send(ImportReport().model_dump_json().encode())
    _serve(requests, lambda: import_function(target))


def _write_all_characters() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", write_through=True)  # type: ignore[union-attr]


def _serve(requests: socket.socket, load: Callable[[], AgentFunction]) -> None:
    """Answer requests until passgate closes its end; a process of a trial answers its turns."""
    del sys.argv[1:]
    gc.freeze()  # what is collected in a fork is copied
    while True:
        message, numbers, _, _ = socket.recv_fds(requests, 1, _DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return
        turns, control = (socket.socket(fileno=number) for number in numbers[:2])
        # Processes of trials that have ended stay in the process table until somebody has asked how they did.
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        if _fork() == 0:
            break
        turns.close()
        control.close()
        os.close(numbers[2])
    requests.close()
    fork_kept(control)
    answer_turns(turns, numbers[2], load)


def _fork() -> int:
    """As `os.fork`; -1 when the machine has no room for another process, which passgate sees by closed sockets."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with warnings.catch_warnings():
        # Threads of native libraries, which look after themselves.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return os.fork()
        except OSError:
            return -1


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
        where = "".join(f" ({frame.filename}:{frame.lineno})" for frame in _frames(error)[-1:])
        raise ImportProblemError(f"cannot be imported: {described(error)}{where}") from error
    if not callable(function):
        raise ImportProblemError("is not a function")
    return function  # type: ignore[no-any-return]


def described(error: BaseException) -> str:
    """An exception in one line."""
    text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else repr(error)
    return sendable(text)[:_LONGEST_MESSAGE]


def traced(error: BaseException) -> str:
    """An exception with the last frames that led to it, the innermost at the end; at most `MAX_DETAIL` characters."""
    places = [
        f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
        + (f"\n    {frame.line}" if frame.line else "")
        for frame in _frames(error)[-_MOST_FRAMES:]
    ]
    frames = "\n".join(places)
    room = MAX_DETAIL - len(described(error)) - 1
    return f"{described(error)}\n{sendable(frames)[-room:]}".rstrip()


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The frames of the agent, without those that called it."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((n for n, frame in enumerate(frames) if not frame.filename.startswith(_CALLERS)), len(frames))
    return list(frames[first:])


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
            reply = _answered(TurnRequest.model_validate_json(line), load, runner)
            _flush()
            turns.sendall(reply.model_dump_json().encode() + b"\n")
    # End as a Python process does, but for taking every module apart, which takes ten times as long as a trial.
    threading._shutdown()  # type: ignore[attr-defined] # noqa: SLF001 - waits for threads; nothing public does
    atexit._run_exitfuncs()  # noqa: SLF001
    _flush()
    os._exit(0)


def _answered(request: TurnRequest, load: Callable[[], AgentFunction], runner: asyncio.Runner) -> TurnReply:
    os.environ.update(request.variables)
    try:
        answer = load()(request.attempt)
        if inspect.isawaitable(answer):
            answer = runner.run(_awaited(answer))
        return _recorded(answer)
    except MeasurementError as error:
        return TurnUnmeasurable(message=sendable(str(error)), transient=error.transient)
    except ImportProblemError as error:
        return TurnCrashed(detail=f"the agent {error}")
    except BaseException as error:  # noqa: BLE001 - whatever the agent raises is how its turn has ended
        return TurnCrashed(detail=traced(error))


def _recorded(answer: Any) -> TurnReply:
    try:
        return TurnAnswered(transcript=transcript_of(answer))
    except MeasurementError as error:
        return TurnUnreadable(detail=sendable(str(error))[:MAX_DETAIL])


async def _awaited(answer: Awaitable[Any]) -> Any:
    """The answer of whatever can be awaited, as a coroutine."""
    return await answer


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # the agent may have closed or replaced it


if __name__ == "__main__":
    main()
