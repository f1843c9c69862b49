"""How the command of an agent is written: with passgate's placeholders, or as AgentV has it.

AgentV's placeholders are upper-case, its commands are lines for a shell, and its agents answer in a JSON of its own.
"""

import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from passgate.tasks.agents.cli.agentv_output import transcript_of_agentv
from passgate.tasks.agents.cli.places import Places
from passgate.tasks.agents.transcripts import read_left_file, transcript_of
from passgate.tasks.errors import UsageError
from passgate.tasks.model.transcript import EndReason, Transcript

PLACEHOLDERS: Final = (
    *("prompt", "prompt_file", "inputs_file", "history_file", "transcript_file"),
    *("workspace", "project", "task_id", "test_id", "trial", "turn", "session"),
)
AGENTV_PLACEHOLDERS: Final = {
    "PROMPT": "prompt",
    "PROMPT_FILE": "prompt_file",
    "EVAL_ID": "test_id",
    "ATTEMPT": "trial",
    "FILES": "files",
    "OUTPUT_FILE": "output_file",
}
"""Each with passgate's name for what it stands for."""
_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+|[A-Z_]+)\}")
_OF_A_FILE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Given:
    """What the placeholders of one turn stand for."""

    values: Mapping[str, str]
    """By the names of `PLACEHOLDERS`, and `output_file`."""
    files: tuple[Path, ...]


class Command(Protocol):
    """The command of an agent."""

    def filled(self, given: Given) -> list[str]:
        """The words that are run."""

    def answer(self, printed: str, given: Given) -> Transcript:
        """The transcript of an agent that left none of passgate's shape. Raises `MeasurementError`."""


@dataclass(frozen=True)
class Words:
    """A command that is started without a shell; placeholders are replaced within its words."""

    words: tuple[str, ...]

    def filled(self, given: Given) -> list[str]:
        return [_PLACEHOLDER.sub(lambda match: given.values[match[1]], word) for word in self.words]

    def answer(self, printed: str, given: Given) -> Transcript:
        return transcript_of(printed.strip())


@dataclass(frozen=True)
class AgentVLine:
    """A line for `sh -c`; placeholders are replaced by shell words. What is in other braces is the shell's."""

    line: str
    files_format: str

    def filled(self, given: Given) -> list[str]:
        return ["sh", "-c", _PLACEHOLDER.sub(lambda match: self._word(match, given), self.line)]

    def _word(self, match: re.Match[str], given: Given) -> str:
        name = AGENTV_PLACEHOLDERS.get(match[1], match[1])
        if name == "files":
            return " ".join(_formatted(file, self.files_format) for file in given.files)
        return shlex.quote(given.values[name]) if name in given.values else match[0]

    def answer(self, printed: str, given: Given) -> Transcript:
        if "{OUTPUT_FILE}" not in self.line:
            return transcript_of_agentv(printed)
        content = read_left_file(Path(given.values["output_file"]))
        if content is None:
            detail = "it left nothing at {OUTPUT_FILE}"
            return Transcript(complete=False, end=EndReason.CRASHED, detail=detail)
        return transcript_of_agentv(content.decode("utf-8", "replace"))


def read_command(text: str, files_format: str, places: Places) -> Command:
    """A command as it is written. Raises `UsageError` for one that cannot be started."""
    names = {match[1] for match in _PLACEHOLDER.finditer(text)}
    is_agentv = any(name.isupper() for name in names)
    _refuse_unknown({name for name in names if name.isupper() or not is_agentv})
    if is_agentv:
        _refuse_unknown_of_files(files_format)
        return AgentVLine(text, files_format)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the agent command {text!r} cannot be split into words: {error}") from error
    places.refuse_misplaced(text, words)
    _refuse_missing(words[0], places)
    return Words(tuple(words))


def _refuse_unknown(names: set[str]) -> None:
    known = [*PLACEHOLDERS, *AGENTV_PLACEHOLDERS]
    for name in sorted(names.difference(known)):
        listed = ", ".join(f"{{{known_one}}}" for known_one in known)
        raise UsageError(f"unknown placeholder {{{name}}} in the agent command; known: {listed}")


def _refuse_unknown_of_files(files_format: str) -> None:
    for name in _OF_A_FILE.findall(files_format):
        if name not in {"path", "basename"}:
            raise UsageError(f"unknown placeholder {{{name}}} in files_format; known: {{path}}, {{basename}}")


def _refuse_missing(program: str, places: Places) -> None:
    """A program of the machine or of the repository must be there; a relative path may come with the sandbox."""
    place = program.replace("{project}", str(places.project))
    if "{" in place:
        return
    if "/" in place and not place.startswith("/"):
        if places.start is None:
            return
        place = str(places.start / place)
    if shutil.which(place) is None:
        is_there = "/" in place and Path(place).is_file()
        remedy = f"cannot be run: `chmod +x {place}`" if is_there else "is not on this machine: check --agent and PATH"
        raise UsageError(f"the agent command {program!r} {remedy}")


def _formatted(file: Path, files_format: str) -> str:
    words = {"path": shlex.quote(str(file)), "basename": shlex.quote(file.name)}
    return _OF_A_FILE.sub(lambda match: words[match[1]], files_format)
