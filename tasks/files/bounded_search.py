"""Search texts for regular expressions in a process that the system can end: some searches take for ever."""

import asyncio
import contextlib
import json
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import regress

CPU_SECONDS: Final = 2  # CPU time of one search: a busy machine does not make it fail
WALL_SECONDS: Final = 60
LONGEST_TEXT: Final = 10_000_000  # Characters of one text that is searched
_TOO_SLOW: Final = frozenset({-signal.SIGKILL, -signal.SIGXCPU})
_MAY_TAKE_LONG: Final = re.compile(r"[*+?{(]")  # Without any of them a search takes no longer than the text
# The cache of `re` holds 512 expressions, and a suite of a thousand tasks has more that each of its trials asks for.
_compiled = lru_cache(maxsize=4096)(re.compile)
_WORKER: Final = Path(__file__).with_name("search_worker.py")


async def search_python(pattern: str, texts: Sequence[str], *, ignore_case: bool = False) -> list[bool] | str:
    """Return for each text whether an expression of Python matches somewhere in it, or why that is not known, as the
    rest of a sentence about the expression.
    """
    try:
        expression = _compiled(pattern, re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        return f"is no regular expression: {error}"
    if not _MAY_TAKE_LONG.search(pattern):
        return [expression.search(text) is not None for text in texts]
    return await _search(texts, [pattern, "python", "i" if ignore_case else "", texts, False])


async def search_javascript(pattern: str, texts: Sequence[str], flags: str, *, at_start: bool) -> list[bool] | str:
    """Return as `search_python` for an expression of JavaScript, whose match must begin a text if it is `at_start`."""
    return await _search(texts, [pattern, "javascript", flags, texts, at_start])


async def _search(texts: Sequence[str], task: list[Any]) -> list[bool] | str:
    longest, characters = max(map(len, texts), default=0), sum(map(len, texts))
    if longest > LONGEST_TEXT:
        return f"is not searched for in {longest} characters: these are too many"
    folder = Path(regress.__file__).parent.parent
    seconds = CPU_SECONDS + characters // LONGEST_TEXT
    command = [sys.executable, "-I", "-S", str(_WORKER), str(folder), str(seconds)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={})
    answer = b""
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WALL_SECONDS):
                answer, _ = await process.communicate(json.dumps(task).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode in _TOO_SLOW:
        return f"takes more than {CPU_SECONDS} s on this text: simplify it, and avoid a repetition inside another one"
    return list(json.loads(answer)) if process.returncode == 0 else f"ended its search with {process.returncode}"
