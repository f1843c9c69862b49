"""A program of the suites' authors that grades a trial."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.programs.code_input import code_input, encoded
from passgate.tasks.graders.programs.code_reply import read_code_reply
from passgate.tasks.graders.programs.grader_reply import GraderReply, grade_of
from passgate.tasks.model.assertions import CodeGrader
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.sandbox import ProcessResult

LONGEST_OUTPUT: Final = 50_000
"""Bytes of an answer from which on it lies in a file too."""
ReadReply = Callable[[str, str, int], GraderReply]
"""What a program says, from its output, its error output and its exit code."""


async def grade_code(options: CodeGrader, evidence: Evidence) -> Grade:
    """Give the trial to a program as `code_input` says, and take its score as `read_code_reply` says.

    Raises `MeasurementError` when the program cannot be run, does not end in its time, prints too much, or gives no
    usable reply: then nothing is known of the agent.
    """
    return await grade_with_program(options, evidence, read_code_reply)


async def grade_with_program(options: CodeGrader, evidence: Evidence, read: ReadReply) -> Grade:
    """The grade of a program whose reply is read by `read`. Raises `MeasurementError` as `grade_code` does."""
    with _answer_file(evidence) as path:
        document = code_input(evidence, options.config, path)
        result = await run_program(options, evidence, document)
    reply = read(result.stdout, result.stderr, result.exit_code)
    return grade_of(options, reply)


async def run_program(options: CodeGrader, evidence: Evidence, document: Mapping[str, Any]) -> ProcessResult:
    """Run a grader's program with a document as JSON on its standard input.

    Raises `MeasurementError` when it cannot be started, does not end in its time or prints too much.
    """
    folder = evidence.suites_folder / options.cwd
    if not await asyncio.to_thread(folder.is_dir):
        raise MeasurementError(f"{options.label}: the folder {options.cwd} does not exist")
    result = await evidence.sandbox.run_for_authors(
        options.command,
        folder=folder,
        seconds=options.timeout_seconds,
        stdin=await asyncio.to_thread(encoded, document),
        environment={"AGENTV_WORKSPACE_PATH": str(evidence.sandbox.workspace)},
    )
    if result.timed_out:
        raise MeasurementError(f"{options.label}: the grader did not end within {options.timeout_seconds:g} seconds")
    if result.output_limit_hit:
        raise MeasurementError(f"{options.label}: the grader printed more than passgate keeps")
    return result


@contextmanager
def _answer_file(evidence: Evidence) -> Iterator[Path | None]:
    """A file with the answer where that is long."""
    answer = evidence.transcript.output.encode("utf-8", "replace")
    if len(answer) <= LONGEST_OUTPUT:
        yield None
        return
    with TemporaryDirectory(dir=evidence.sandbox.scratch, ignore_cleanup_errors=True) as folder:
        path = Path(folder, "output.txt")
        path.write_bytes(answer)
        yield path
