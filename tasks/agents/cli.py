"""Any command as an agent, run in the trial's sandbox."""

import json
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from passgate.tasks.agents.interface import AgentSandbox
from passgate.tasks.agents.transcripts import read_transcript_file, transcript_of
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.sandbox import ProcessResult
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript

PLACEHOLDERS = ("prompt", "prompt_file", "inputs_file", "transcript_file", "workspace", "task_id", "trial")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_OURS = frozenset({"PATH", "HOME", "TMPDIR", "LANG", "PYTHONDONTWRITEBYTECODE"})
_OF_THE_JUDGE = "PASSGATE_JUDGE_"
_TAIL = 2000


@dataclass(frozen=True)
class CliAgent:
    """A command whose words may hold placeholders, as in `cli:my-agent --task {prompt_file}`.

    It is started without a shell, in the workspace, with the environment of passgate. It may write its transcript
    to `{transcript_file}`, which is also in PASSGATE_TRANSCRIPT; else what it prints is its answer.
    """

    command: tuple[str, ...]

    @classmethod
    def from_command(cls, text: str) -> Self:
        """Split and check a command. Raises `UsageError` for one that cannot be started."""
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"the agent command {text!r} cannot be split into words: {error}") from error
        for word in words:
            for name in _PLACEHOLDER.findall(word):
                if name not in PLACEHOLDERS:
                    known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
                    raise UsageError(f"unknown placeholder {{{name}}} in the agent command; known: {known}")
        _refuse_missing(words[0])
        return cls(tuple(words))

    async def run(self, task: EvalTask, trial: int, sandbox: AgentSandbox, *, seconds: float) -> Transcript:
        """See `Agent.run`."""
        values = _placeholders(task, trial, sandbox)
        result = await sandbox.run(
            [_PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in self.command],
            seconds=seconds,
            environment=_environment(values),
            network=sandbox.network,
        )
        end, detail = _end(result)
        try:
            reported = read_transcript_file(Path(values["transcript_file"]))
        except MeasurementError:
            # An agent that was cut off while it wrote has failed for certain.
            if end is EndReason.COMPLETED:
                raise
            reported = None
        transcript = reported or transcript_of(result.stdout.strip())
        return transcript.model_copy(update={"end": end, "detail": detail})


def _refuse_missing(program: str) -> None:
    """A program of the machine must be there; a relative path may come with the sandbox."""
    relative = "/" in program and not program.startswith("/")
    if not relative and "{" not in program and shutil.which(program) is None:
        raise UsageError(f"the agent command {program!r} is not on this machine: check --agent and PATH")


def _placeholders(task: EvalTask, trial: int, sandbox: AgentSandbox) -> dict[str, str]:
    prompt_file, inputs_file = sandbox.scratch / "prompt.txt", sandbox.scratch / "inputs.json"
    prompt_file.write_text(task.prompt, encoding="utf-8")
    inputs_file.write_text(json.dumps(task.inputs, ensure_ascii=False, default=str), encoding="utf-8")
    return {
        "prompt": task.prompt,
        "prompt_file": str(prompt_file),
        "inputs_file": str(inputs_file),
        "transcript_file": str(sandbox.scratch / "transcript.json"),
        "workspace": str(sandbox.workspace),
        "task_id": task.task_id,
        "trial": str(trial),
    }


def _environment(values: dict[str, str]) -> dict[str, str]:
    inherited = {
        key: value for key, value in os.environ.items() if key not in _OURS and not key.startswith(_OF_THE_JUDGE)
    }
    return {
        **inherited,
        "PASSGATE_TASK_ID": values["task_id"],
        "PASSGATE_TRIAL": values["trial"],
        "PASSGATE_PROMPT_FILE": values["prompt_file"],
        "PASSGATE_INPUTS_FILE": values["inputs_file"],
        "PASSGATE_TRANSCRIPT": values["transcript_file"],
    }


def _end(result: ProcessResult) -> tuple[EndReason, str]:
    tail = (result.stderr.strip() or result.stdout.strip())[-_TAIL:]
    if result.timed_out:
        return EndReason.TIMED_OUT, tail
    if result.output_limit_hit:
        return EndReason.OUTPUT_LIMIT, ""
    if result.exit_code != 0:
        return EndReason.CRASHED, f"exit code {result.exit_code}: {tail}"
    return EndReason.COMPLETED, ""
