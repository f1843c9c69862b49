"""What a process prints, read as it comes."""

import asyncio
import os
from typing import Final

PRINTED_BYTES: Final = 64 * 1024
"""How much of what an agent prints is kept: its end."""
MAX_PRINTED_BYTES: Final = 64 * 1024 * 1024
"""An agent that prints more than this in a trial is ended."""
_CHUNK: Final = 64 * 1024
_MOST_CHUNKS: Final = 64


class Printed:
    """Reads a pipe on the running event loop and keeps the end of what comes."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._kept = bytearray()
        self._seen = 0
        self._is_cut = False
        self.flooded = asyncio.Event()
        """Set once more than `MAX_PRINTED_BYTES` have come."""
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
            text = text.lstrip("\ufffd")  # half a character may stand where it was cut
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
