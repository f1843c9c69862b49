"""The process of one trial as passgate sees it: started, asked for turns, read from and ended."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Self

from pydantic import ValidationError

from passgate.tasks.agents.processes.messages import MAX_REPLY_BYTES, STARTED, TurnReply, TurnRequest
from passgate.tasks.agents.processes.server import ForkServer, TrialConnections, process_end
from passgate.tasks.agents.transcripts import (
    MAX_TRANSCRIPT_BYTES,
    PRINTED_BYTES,
    first_problem,
    no_answer,
    read_transcript,
    refuse_endless,
)
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.quotes import CUT
from passgate.tasks.model.transcript import EndReason, Message, Transcript

MAX_PRINTED_BYTES: Final = 64 * 1024 * 1024  # An agent that prints more than this in a trial is ended
_START_SECONDS: Final = 60.0
_EXIT_SECONDS: Final = 2.0  # How long a process has after its last turn for what it does at its exit
_KILL_SECONDS: Final = 15.0
_CHUNK: Final = 64 * 1024
_MOST_CHUNKS: Final = 64  # Read in one go: a process that never stops printing must not hold up the event loop


class Printed:
    """Reads a pipe on the running event loop and keeps the end of what comes."""

    def __init__(self, pipe: int, stop: Callable[[], None]) -> None:
        """`stop` is called once more than `MAX_PRINTED_BYTES` have come."""
        self._pipe = pipe
        self._stop = stop
        self._kept = bytearray()
        self._seen = 0
        os.set_blocking(pipe, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(pipe, self._read)

    @property
    def is_too_much(self) -> bool:
        return self._seen > MAX_PRINTED_BYTES

    def take(self) -> str:
        """Return the end of what has come since the last call."""
        for _ in range(_MOST_CHUNKS):
            if not self._read():
                break
        if len(self._kept) <= PRINTED_BYTES:
            text = self._kept.decode("utf-8", "replace")
        else:
            kept = self._kept[len(CUT.encode()) - PRINTED_BYTES :]
            # Half a character may stand where it was cut.
            text = CUT + kept.decode("utf-8", "replace").lstrip("\ufffd")
        self._kept.clear()
        return text

    def close(self) -> None:
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)

    def _read(self) -> int:
        """Read one chunk. Return the number of its bytes."""
        try:
            chunk = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return 0
        if not chunk:
            self._loop.remove_reader(self._pipe)
        self._kept += chunk
        self._seen += len(chunk)
        if len(self._kept) > 2 * PRINTED_BYTES:
            del self._kept[: -PRINTED_BYTES - 1]
        if self.is_too_much:
            self._stop()
        return len(chunk)


async def start_process(server: ForkServer) -> "TrialProcess":
    """Return a new process. Raises `MeasurementError` if the machine has none to give."""
    for _ in range(2):
        process = await TrialProcess.open(server.fork())
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

    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _control: asyncio.StreamWriter
    _printed: Printed
    _ended: asyncio.Task[bytes]  # What the keeper reports once the process and all that it started have ended

    @classmethod
    async def open(cls, connections: TrialConnections) -> Self:
        self = cls()
        self._reader, self._writer = await asyncio.open_connection(sock=connections.turns, limit=MAX_REPLY_BYTES)
        reports, self._control = await asyncio.open_connection(sock=connections.control)

        async def report() -> bytes:
            with suppress(OSError):
                return await reports.read()
            return b""

        self._ended = asyncio.create_task(report())
        self._printed = Printed(connections.output, self.kill)
        return self

    async def has_started(self) -> bool:
        """Wait until the process runs. Return whether it does."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                return await self._reader.readline() == STARTED
        except (TimeoutError, OSError, ValueError):
            return False

    async def turn(self, request: TurnRequest, *, seconds: float) -> Transcript:
        """Return what came of one turn in at most `seconds`. A process that does not reply as it should is killed.

        Raises `MeasurementError` if the agent did.
        """
        said = (Message(role="user", content=request.attempt.prompt),)
        reply: TurnReply | Transcript = no_answer(EndReason.TIMED_OUT, said=said)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    reply = await self._reply(request, said)
        finally:
            if isinstance(reply, Transcript):
                self.kill()
        if isinstance(reply, TurnReply):
            if reply.transcript is None:
                raise MeasurementError(reply.message, transient=reply.transient)
            try:
                # The agent's own code may have written the reply.
                reply = read_transcript(reply.transcript)
            except MeasurementError as error:
                reply = no_answer(EndReason.UNREADABLE, str(error), said)
        printed = self._printed.take()
        return reply.model_copy(update={"printed": printed}) if printed else reply

    async def _reply(self, request: TurnRequest, said: tuple[Message, ...]) -> TurnReply | Transcript:
        """Return the reply, or the transcript of a turn without a usable one."""
        try:
            self._writer.write(request.model_dump_json().encode() + b"\n")
            await self._writer.drain()
            line = await self._reader.readuntil()
        except asyncio.LimitOverrunError:
            return no_answer(EndReason.OUTPUT_LIMIT, f"it returned more than {MAX_TRANSCRIPT_BYTES // 2**20} MiB", said)
        except (asyncio.IncompleteReadError, OSError):
            await asyncio.wait({self._ended})
            if self._printed.is_too_much:
                return no_answer(EndReason.OUTPUT_LIMIT, said=said)
            return no_answer(EndReason.CRASHED, f"{process_end(self._ended.result())} before it answered", said)
        try:
            refuse_endless(line)
            return TurnReply.model_validate_json(line)
        except ValueError as error:
            problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
            return no_answer(EndReason.CRASHED, f"its reply cannot be read: {problem}", said)

    def kill(self) -> None:
        """End the process and all that it started; `end` waits until none is left."""
        with suppress(OSError):
            self._control.write_eof()

    async def end(self) -> None:
        """Let the process end by itself if it does so soon, kill what is left, and wait until nothing is."""
        try:
            with suppress(OSError):
                self._writer.write_eof()
            await asyncio.wait({self._ended}, timeout=_EXIT_SECONDS)
        finally:
            self.kill()
            try:
                await asyncio.wait({self._ended}, timeout=_KILL_SECONDS)
            finally:
                self._ended.cancel()
                self._writer.transport.abort()
                self._control.transport.abort()
                self._printed.close()
