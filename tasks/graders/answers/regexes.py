"""Regular expressions of eval files, searched for within a time limit."""

import asyncio
import json
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Final

import regress

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers import regex_worker
from passgate.tasks.graders.checks import expectation, scored
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.texts import shorten
from passgate.tasks.model.assertions import Regex
from passgate.tasks.model.grade import Check, Grade
from passgate.tasks.model.javascript_regex import engine_flags, regex_problem

CPU_SECONDS: Final = 2
"""CPU time of one search: a busy machine does not make it fail."""
WALL_SECONDS: Final = 60
LONGEST_TEXT: Final = 10_000_000
"""Characters of one text that is searched."""
_HALF_CHARACTERS: Final = re.compile("[\ud800-\udfff]")
_TOO_SLOW: Final = frozenset({-signal.SIGKILL, -signal.SIGXCPU})


async def grade_regex(options: Regex, evidence: Evidence) -> Grade:
    """1 when the regular expression is found in the final answer, else 0.

    Raises `MeasurementError` as `regex_found` does.
    """
    found = await regex_found(options.value, options.flags, evidence.transcript.output)
    shown = shorten(f"/{options.value}/{options.flags}", 500)
    message = f"the answer {'matches' if found else 'does not match'} {shown}{expectation(passed=found)}"
    return scored(options, float(found), [Check(passed=found, message=message)])


async def regex_found(pattern: str, flags: str, text: str) -> bool:
    """Whether a regular expression is found in a text, as by JavaScript's `new RegExp(pattern, flags).test(text)`.

    Raises `MeasurementError` when JavaScript does not take the expression, and when the search takes too long.
    """
    problem = regex_problem(pattern, flags)
    if problem is not None:
        raise MeasurementError(f"/{shorten(pattern, 500)}/: {problem}")
    if len(text) > LONGEST_TEXT:
        raise MeasurementError(f"a text of {len(text)} characters is too long for a regular expression")
    request = [pattern, engine_flags(flags), _HALF_CHARACTERS.sub("\ufffd", text), "y" in flags]
    folder = Path(regress.__file__).parent.parent
    command = [sys.executable, "-I", "-S", regex_worker.__file__, str(folder), str(CPU_SECONDS)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={})
    answer = await _answer(process, json.dumps(request).encode())
    if process.returncode in _TOO_SLOW:
        raise MeasurementError(
            f"/{shorten(pattern, 500)}/ takes more than {CPU_SECONDS} s on this text: simplify it, "
            "and avoid a repetition inside another one"
        )
    if process.returncode != 0 or answer not in {b"true", b"false"}:
        raise MeasurementError(f"the search for /{shorten(pattern, 500)}/ ended with {process.returncode}")
    return answer == b"true"


async def _answer(process: Process, request: bytes) -> bytes:
    try:
        async with asyncio.timeout(WALL_SECONDS):
            return (await process.communicate(request))[0]
    except TimeoutError:
        return b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
