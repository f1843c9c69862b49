"""Any command as an agent, run in the trial's sandbox: `cli:COMMAND`."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from passgate.tasks.agents.commands import Command, Given, Places, read_command, refuse_missing
from passgate.tasks.agents.interface import PROBE_SECONDS, Agent, AgentSandbox, Attempt, model_environment, symptom
from passgate.tasks.agents.presets import find_preset
from passgate.tasks.agents.transcripts import (
    LONGEST_DETAIL,
    missing_key,
    no_answer,
    read_transcript,
    read_transcript_file,
)
from passgate.tasks.errors import MeasurementError
from passgate.tasks.files.environment import inherited_variables, search_path
from passgate.tasks.metering.access import SERVER, ModelAccess
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.checks import State, Symptom
from passgate.tasks.model.quotes import end as last_part
from passgate.tasks.model.sandbox import ProcessResult
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript

LONGEST_WORD: Final = 128 * 1024 - 1  # Bytes: MAX_ARG_STRLEN of Linux, with the byte that ends a word
_OURS: Final = frozenset({"PATH", "HOME", "TMPDIR", "LANG", "PYTHONDONTWRITEBYTECODE"})
_ANNOUNCED: Final = {
    "PASSGATE_TASK_ID": "task_id",
    "PASSGATE_TRIAL": "trial",
    "PASSGATE_TURN": "turn",
    "PASSGATE_SESSION": "session",
    "PASSGATE_PROMPT_FILE": "prompt_file",
    "PASSGATE_INPUTS_FILE": "inputs_file",
    "PASSGATE_HISTORY": "history_file",
    "PASSGATE_TRANSCRIPT": "transcript_file",
    "PASSGATE_MCP_CONFIG": "mcp_config",
}  # Environment variables, each with the placeholder that says the same
_MCP_STDIO: Final = Path(__file__).resolve().with_name("mcp_stdio.py")
_PROGRAM: Final = re.compile(r"[A-Za-z0-9_.+-]+")  # What is plainly the name of a program
_SAID: Final = {"role", "content", "tool_calls"}
_EXCERPT: Final = 2000  # Characters in which interpreters say what is missing
_CANNOT_START: Final = frozenset({126, 127})
"""The exit codes of shells for a program that cannot be run, and for one that is not there."""
_MISSING_SCRIPT: Final = re.compile(
    r"^\S*python\S*: (?:can't open file .*\[Errno \d+\]|No module named \S+$|can't find '__main__' module in)"
    r"|^Error: Cannot find module (?s:.*)requireStack: \[\]"
    r"|^\S*sh: (?:\d+: )?cannot open \S+: No such file"
    r"|^Can't open perl script "
    r"|^\S*ruby: No such file or directory -- "
    r"|^error: Failed to spawn: ",
    re.MULTILINE,
)  # How interpreters say that the script is not there which they were to run

_VERSION_SECONDS = 30.0  # Some clients unpack themselves at their first start


@dataclass(frozen=True)
class CliAgent(Agent):
    """A command whose words may hold placeholders, as in `cli:my-agent --task {prompt_file}`.

    It is started in the workspace, or where `places` say, once for every turn, with the environment of passgate. It
    may write its transcript to `{transcript_file}`, which is also in PASSGATE_TRANSCRIPT; else what it prints is its
    answer.
    """

    command: Command
    places: Places

    @classmethod
    def from_spec(cls, spec: AgentSpec, suites_folder: Path) -> Self:
        """Return the agent. Raises `UsageError` for a command that cannot be started."""
        places = Places.of(spec.cwd, suites_folder)
        if preset := find_preset(spec.target):
            refuse_missing(preset.program, places, f"npm install --global {preset.package}")
        return cls(read_command(spec.target, spec.files_format, places), places)

    @classmethod
    def describe(cls, spec: AgentSpec) -> Symptom:
        """Say what the first word of the command stands for, or the program of a preset: nobody has checked lines for
        a shell.
        """
        preset = find_preset(spec.target)
        first = preset.program if preset else spec.target.split(maxsplit=1)[0]
        if not _PROGRAM.fullmatch(first):
            return super().describe(spec)
        words = ["sh", "-c", 'command -v "$1"', "sh", first]
        try:
            environment = {**os.environ, "PATH": search_path()}
            ran = subprocess.run(
                words, capture_output=True, text=True, check=False, timeout=PROBE_SECONDS, env=environment
            )
            place = "built into the shell" if ran.stdout.strip() == first else ran.stdout.strip()
        except (OSError, subprocess.TimeoutExpired):
            place = ""
        found = f"{first} is {place}" if place else f"{first} is not on PATH"
        state, remedy = (State.OK, "") if place else (State.WARNING, "check the command, and PATH")
        if preset is not None and place:
            found = f"{found}, version {_version(place)}"
        return symptom(spec, spec.kind, state, found, remedy)

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        given = _given(attempt, sandbox, self.places.project, access.mcp_url, task.mcp_servers)
        words = self.command.fill(given)
        longest = max(len(os.fsencode(word)) for word in words)
        if longest > LONGEST_WORD:
            raise MeasurementError(
                f"a word of the agent's command has {longest:,} bytes, and Linux allows {LONGEST_WORD:,}: "
                "have the agent read {prompt_file} in place of {prompt}"
            )
        inherited = {name: value for name, value in inherited_variables().items() if name not in _OURS}
        announced = {variable: given.values[name] for variable, name in _ANNOUNCED.items()}
        environment = {**inherited, **sandbox.variables, **announced}
        environment |= model_environment(environment, access)
        result = await sandbox.run(
            words, folder=self.places.start, seconds=seconds, environment=environment, network=sandbox.network
        )
        transcript = self._transcript(result, given, environment)
        last = last_part(result.stderr.strip(), LONGEST_DETAIL)
        return transcript.model_copy(update={"printed": last}) if last else transcript

    def _transcript(self, result: ProcessResult, given: Given, environment: Mapping[str, str]) -> Transcript:
        end, detail = _end(result, environment)
        if end is EndReason.NOT_STARTED:
            return no_answer(end, detail)
        try:
            left = read_transcript_file(Path(given.values["transcript_file"]))
            transcript = self.command.answer(result.stdout, given) if left is None else left
        except MeasurementError as error:
            # An agent that ends well and leaves what nobody can read has chosen not to be measured: it has failed.
            if end is EndReason.COMPLETED:
                end, detail = EndReason.UNREADABLE, str(error)
            left = transcript = read_transcript(result.stdout.strip())
        # How it ended is not the agent's to say; what AgentV's agents answer may say that they have crashed.
        if end is EndReason.COMPLETED and left is None:
            return transcript
        return transcript.model_copy(update={"end": end, "detail": detail})


def _version(program: str) -> str:
    """Return what a program says of its version, on one line."""
    try:
        ran = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, timeout=_VERSION_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    lines = ran.stdout.strip().splitlines()
    return lines[-1] if lines else "unknown"


def _given(attempt: Attempt, sandbox: AgentSandbox, project: Path, mcp_url: str, servers: Iterable[str]) -> Given:
    """Write what the agent gets to files, in a folder that no turn before had."""
    folder = Path(tempfile.mkdtemp(prefix="turn-", dir=sandbox.scratch))
    files = {
        "prompt_file": folder / "prompt.txt",
        "inputs_file": folder / "inputs.json",
        "history_file": folder / "history.json",
        "transcript_file": folder / "transcript.json",
        "output_file": folder / "output.json",
        "mcp_config": folder / "mcp.json",
    }
    history = [message.model_dump(mode="json", include=_SAID) for message in attempt.history]
    files["prompt_file"].write_text(attempt.prompt, encoding="utf-8")
    files["inputs_file"].write_text(json.dumps(attempt.inputs, ensure_ascii=False, default=str), encoding="utf-8")
    files["history_file"].write_text(json.dumps(history, ensure_ascii=False), encoding="utf-8")
    # A server of its own for each, as in the configuration that the agent has in production.
    addresses = {SERVER: f"{mcp_url}/{SERVER}", **{name: f"{mcp_url}/{name}" for name in servers}} if mcp_url else {}
    configuration = {"mcpServers": {name: {"type": "http", "url": url} for name, url in addresses.items()}}
    files["mcp_config"].write_text(json.dumps(configuration), encoding="utf-8")
    values = {
        **{name: str(file) for name, file in files.items()},
        "prompt": attempt.prompt,
        "workspace": str(sandbox.workspace),
        "project": str(project),
        "task_id": attempt.task_id,
        "test_id": attempt.test_id or attempt.task_id,
        "trial": str(attempt.trial),
        "turn": str(attempt.turn),
        "session": attempt.session,
        "mcp_url": mcp_url,
        "mcp_command": shlex.join([sys.executable, "-I", "-S", str(_MCP_STDIO), mcp_url]),
    }
    # The files of `inputs.files` and those of the task's messages, without images.
    listed = attempt.inputs.get("files")
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list | tuple) else []
    blocks = [block for message in attempt.messages for block in message.content if not isinstance(block, str)]
    named = [str(block.value) for block in blocks if block.type == "file"]
    placed = [attempt.files[name] for name in named if name in attempt.files]
    return Given(values, tuple(dict.fromkeys([*(sandbox.workspace / name for name in names), *placed])))


def _end(result: ProcessResult, environment: Mapping[str, str]) -> tuple[EndReason, str]:
    tail = last_part(result.stderr.strip() or result.stdout.strip(), LONGEST_DETAIL)
    if result.timed_out:
        return EndReason.TIMED_OUT, tail
    if result.output_limit_hit:
        return EndReason.OUTPUT_LIMIT, ""
    if result.exit_code == 0:
        return EndReason.COMPLETED, ""
    # Whatever has printed an answer was started, also where something that it started was not.
    was_missing = result.exit_code in _CANNOT_START or _MISSING_SCRIPT.search(result.stderr[:_EXCERPT]) is not None
    end = EndReason.NOT_STARTED if was_missing and not result.stdout.strip() else EndReason.CRASHED
    return end, f"exit code {result.exit_code}: {missing_key(tail, environment) or tail}"
