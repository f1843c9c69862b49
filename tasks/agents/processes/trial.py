"""The process of one trial as passgate sees it: it is started, asked for turns, read from and ended."""

import asyncio
import os
import socket
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

from pydantic import ValidationError

from passgate.tasks.agents.processes.messages import (
    MAX_REPLY_BYTES,
    STARTED,
    TURN_REPLY,
    ProcessEnded,
    TurnReply,
    TurnRequest,
)
from passgate.tasks.agents.processes.server import ForkServer, ended_how
from passgate.tasks.agents.transcripts import MAX_TRANSCRIPT_BYTES, first_problem, refuse_endless
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.quotes import end
from passgate.tasks.model.transcript import EndReason

_START_SECONDS: Final = 60.0
_EXIT_SECONDS: Final = 2.0  # How long a process has to end by itself after its last turn, for what it does at its exit
_KILL_SECONDS: Final = 15.0
_MIB: Final = 1024 * 1024
PRINTED_BYTES: Final = 64 * 1024  # How much of what an agent prints is kept: its end
MAX_PRINTED_BYTES: Final = 64 * 1024 * 1024  # An agent that prints more than this in a trial is ended
_CHUNK: Final = 64 * 1024
_MOST_CHUNKS: Final = 64  # That are read at one go: a process that never stops printing must not hold up the event loop


class Printed:
    """Reads a pipe on the running event loop and keeps the end of what comes."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._kept = bytearray()
        self._seen = 0
        self._is_cut = False
        self.flooded = asyncio.Event()  # Set once more than `MAX_PRINTED_BYTES` have come
        os.set_blocking(pipe, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(pipe, self._read)

    def taken(self) -> str:
        """What has come since the last time; the next time begins without it."""
        for _ in range(_MOST_CHUNKS):
            if not self._read():
                break
        text = self._kept[-PRINTED_BYTES:].decode("utf-8", "replace")
        if self._is_cut or len(self._kept) > PRINTED_BYTES:
            # Half a character may stand where it was cut, and half a secret.
            text = end(text.lstrip("\ufffd"), len(text) - 1)
        self._kept.clear()
        self._is_cut = False
        return text

    def close(self) -> None:
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)

    def _read(self) -> int:
        """Take in one chunk; how many bytes came."""
        try:
            chunk = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return 0
        if not chunk:
            self._loop.remove_reader(self._pipe)
        self._kept += chunk
        self._seen += len(chunk)
        if len(self._kept) > 2 * PRINTED_BYTES:
            self._is_cut = True
            del self._kept[:-PRINTED_BYTES]
        if self._seen > MAX_PRINTED_BYTES:
            self.flooded.set()
        return len(chunk)


class NoReply(NamedTuple):
    """How a turn has ended that the process did not reply to."""

    end: EndReason
    detail: str = ""


async def start_process(server: ForkServer) -> "TrialProcess":
    """A new process. Raises `MeasurementError` when the machine has none to give."""
    for _ in range(2):
        connections = server.forked()
        printed, turns = Printed(connections.output), await _Stream.opened(connections.turns)
        process = TrialProcess(turns, await _Stream.opened(connections.control), printed)
        if await process.has_started():
            return process
        await process.end()
        # The agent of another trial may have ended the server.
        try:
            await asyncio.to_thread(server.restart_if_ended)
        except UsageError as error:
            raise MeasurementError(str(error)) from error
    raise MeasurementError("no process could be started for the agent", transient=True)


class TrialProcess:
    """A process that answers the turns of one trial. End it with `end` on the event loop that it was started on."""

    def __init__(self, turns: "_Stream", control: "_Stream", printed: Printed) -> None:
        self._turns = turns
        self._control = control
        self._printed = printed
        self._ended = asyncio.ensure_future(_status(control.reader))

    async def has_started(self) -> bool:
        """Wait until the process is there; whether it is."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                return await self._turns.reader.readline() == STARTED
        except (TimeoutError, OSError, ValueError):
            return False

    async def turn(self, request: TurnRequest, *, seconds: float) -> TurnReply | NoReply:
        """The reply to one turn, in at most `seconds`. A process that does not reply as it should is killed."""
        answering = asyncio.ensure_future(self._reply(request))
        flooded = asyncio.ensure_future(self._printed.flooded.wait())
        try:
            waiting = {answering, flooded, self._ended}
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            reply = await self._outcome(answering, flooded)
        except BaseException:
            self.kill()
            raise
        finally:
            answering.cancel()
            flooded.cancel()
        if isinstance(reply, NoReply):
            self.kill()
        return reply

    def printed(self) -> str:
        """What the process has printed since the last time."""
        return self._printed.taken()

    def kill(self) -> None:
        """End the process and all that it has started; `end` waits until none is left."""
        self._control.close_writing()

    async def end(self) -> None:
        """Let the process end by itself if it does so soon, kill what is left, and wait until nothing is."""
        try:
            self._turns.close_writing()
            await asyncio.wait({self._ended}, timeout=_EXIT_SECONDS)
        finally:
            self.kill()
            try:
                await asyncio.wait({self._ended}, timeout=_KILL_SECONDS)
            finally:
                self._ended.cancel()
                for held in (self._turns, self._control, self._printed):
                    held.close()

    async def _reply(self, request: TurnRequest) -> TurnReply | NoReply:
        """The reply, or what stands in its place. Waits for ever where the process ends: that is told elsewhere."""
        try:
            self._turns.writer.write(request.model_dump_json().encode() + b"\n")
            await self._turns.writer.drain()
            line = await self._turns.reader.readuntil()
        except asyncio.LimitOverrunError:
            return NoReply(EndReason.OUTPUT_LIMIT, f"it gave more than {MAX_TRANSCRIPT_BYTES // _MIB} MiB")
        except (asyncio.IncompleteReadError, OSError):
            await asyncio.wait({self._ended})
            return NoReply(EndReason.CRASHED, "it did not answer")
        try:
            refuse_endless(line)
            return TURN_REPLY.validate_json(line)
        except ValueError as error:
            problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
            return NoReply(EndReason.CRASHED, f"what it gave cannot be read: {problem}")

    async def _outcome(
        self, answering: "asyncio.Future[TurnReply | NoReply]", flooded: "asyncio.Future[Any]"
    ) -> TurnReply | NoReply:
        if self._ended.done():
            # The process may have ended right after its reply.
            await asyncio.wait({answering}, timeout=1)
        if answering.done() and not isinstance(answering.result(), NoReply):
            return answering.result()
        if self._ended.done():
            return NoReply(EndReason.CRASHED, f"{ended_how(self._ended.result())} before it gave an answer")
        if answering.done():
            return answering.result()
        if flooded.done():
            return NoReply(EndReason.OUTPUT_LIMIT)
        return NoReply(EndReason.TIMED_OUT)


class _Stream(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def opened(cls, connection: socket.socket) -> Self:
        return cls(*await asyncio.open_connection(sock=connection, limit=MAX_REPLY_BYTES))

    def close_writing(self) -> None:
        with suppress(OSError):
            if not self.writer.is_closing():
                self.writer.write_eof()

    def close(self) -> None:
        self.writer.transport.abort()


async def _status(control: asyncio.StreamReader) -> int | None:
    """The exit code of a process, once it and all that it has started have ended; `None` when it is not known."""
    try:
        return ProcessEnded.model_validate_json(await control.readline()).status
    except (OSError, ValueError):
        return None
