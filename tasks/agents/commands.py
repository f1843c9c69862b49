"""How the command of an agent is written, with passgate's placeholders or as AgentV has it, and where it starts.

AgentV's placeholders are upper-case, its commands are lines for a shell, and its agents answer in a JSON of its own."""

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from passgate.tasks.agents.transcripts import (
    LONGEST_DETAIL,
    as_text,
    first_problem,
    no_answer,
    read_agent_file,
    read_json,
    read_transcript,
)
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.files.environment import search_path
from passgate.tasks.model.quotes import beginning
from passgate.tasks.model.sandbox import SANDBOXES
from passgate.tasks.model.transcript import MOST, EndReason, Tokens, ToolCall, Transcript, Usage

PLACEHOLDERS: Final = (
    *("prompt", "prompt_file", "inputs_file", "history_file", "transcript_file"),
    *("workspace", "project", "task_id", "test_id", "trial", "turn", "session"),
    *("mcp_url", "mcp_config", "mcp_command"),
)
AGENTV_PLACEHOLDERS: Final = {
    "PROMPT": "prompt",
    "PROMPT_FILE": "prompt_file",
    "EVAL_ID": "test_id",
    "ATTEMPT": "trial",
    "FILES": "files",
    "OUTPUT_FILE": "output_file",
}  # Each with passgate's name for what it stands for
_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+|[A-Z_]+)\}")
_OF_A_FILE = re.compile(r"\{(\w+)\}")
_SANDBOX_FILES = f"{SANDBOXES}/*/files"
_ROLES: Final = ("system", "user", "assistant")
_FAILED: Final = frozenset({"error", "timeout", "cancelled"})


@dataclass(frozen=True)
class Given:
    """What the placeholders of one turn stand for."""

    values: Mapping[str, str]  # By the names of `PLACEHOLDERS`, and `output_file`
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Words:
    """A command that is started without a shell; placeholders are replaced within its words."""

    words: tuple[str, ...]

    def fill(self, given: Given) -> list[str]:
        """Return the words to run."""
        return [_PLACEHOLDER.sub(lambda match: given.values[match[1]], word) for word in self.words]

    def answer(self, printed: str, given: Given) -> Transcript:
        """Return the transcript of an agent that wrote none in passgate's shape. Raises `MeasurementError`."""
        return read_transcript(printed.strip())


@dataclass(frozen=True)
class AgentVLine:
    """A line for `sh -c`; placeholders are replaced by shell words. What is in other braces is the shell's."""

    line: str
    files_format: str

    def fill(self, given: Given) -> list[str]:
        def words(match: re.Match[str]) -> str:
            name = AGENTV_PLACEHOLDERS.get(match[1], match[1])
            if name != "files":
                return shlex.quote(given.values[name]) if name in given.values else match[0]
            parts = [{"path": shlex.quote(str(file)), "basename": shlex.quote(file.name)} for file in given.files]
            return " ".join(_OF_A_FILE.sub(lambda found: part[found[1]], self.files_format) for part in parts)  # noqa: B023

        return ["sh", "-c", _PLACEHOLDER.sub(words, self.line)]

    def answer(self, printed: str, given: Given) -> Transcript:
        if "{OUTPUT_FILE}" not in self.line:
            return agentv_transcript(printed)
        content = read_agent_file(Path(given.values["output_file"]))
        if content is None:
            return no_answer(EndReason.CRASHED, "it left nothing at {OUTPUT_FILE}")
        return agentv_transcript(content.decode("utf-8", "replace"))


Command = Words | AgentVLine


@dataclass(frozen=True)
class Places:
    """Where the files of an agent's command are looked for."""

    working_folder: Path  # Of passgate itself
    project: Path  # What `{project}` stands for: the repository that the working folder lies in
    start: Path | None = None  # The folder that the command starts in; `None` for the trial's workspace
    sandboxes: tuple[Path, ...] = ()  # The folders that workspaces are copied from

    @classmethod
    def of(cls, cwd: str | None, suites_folder: Path | None = None) -> Self:
        """Return the places of a command that starts in `cwd`, a folder relative to the repository.

        Raises `UsageError` if there is no such folder.
        """
        working_folder = Path.cwd()
        folders = (working_folder, *working_folder.parents)
        project = next((folder for folder in folders if (folder / ".git").exists()), working_folder)
        start = None if cwd is None else project / cwd
        if start is not None and not start.is_dir():
            raise UsageError(f"the agent's `cwd` is not a folder: {start}; name one relative to {project}")
        sandboxes = tuple(sorted(suites_folder.glob(_SANDBOX_FILES))) if suites_folder else ()
        return cls(working_folder, project, start, sandboxes)

    def refuse_misplaced(self, text: str, words: Sequence[str]) -> None:
        """Raise `UsageError` if a command names files of the repository by paths that start in the workspace, where no
        sandbox puts such a file. The error holds the command with the right paths.
        """
        found: dict[str, str] = {}
        for word in filter(_is_relative_file_name, words):
            file = next((folder / word for folder in (self.working_folder, self.project) if _has(folder, word)), None)
            if file is not None and not any(_has(folder, word) for folder in self.sandboxes):
                found[word] = f"{{project}}/{file.relative_to(self.project).as_posix()}"
        if self.start is not None or not found:
            return
        right = text
        for word, path in found.items():
            # As a whole word only: `a.py` is also the end of `data.py`.
            plain = path.replace("\\", r"\\")
            right = re.sub(rf"(?<![^\s'\"]){re.escape(word)}(?![^\s'\"])", plain, right)
        word = next(iter(found))
        raise UsageError(
            f"the agent command names {', '.join(found)}. The command starts in the workspace of a trial, and the file "
            f"is in the repository: write {shlex.quote(f'cli:{right}')}. Where the task makes such a file, write "
            f"{{workspace}}/{word.removeprefix('./')}"
        )


def _is_relative_file_name(word: str) -> bool:
    """Return whether a word is clearly the path of a file: a bare word, as in `run`, may be anything."""
    is_plain = word == word.strip() and not word.startswith(("-", "/", "~")) and "{" not in word
    return is_plain and ".." not in Path(word).parts and ("/" in word or bool(Path(word).suffix))


def _has(folder: Path, name: str) -> bool:
    try:
        return (folder / name).is_file()
    except (OSError, ValueError):  # a word can be too long for a path
        return False


def read_command(text: str, files_format: str, places: Places) -> Command:
    """Parse a command. Raises `UsageError` for one that cannot be started."""
    names = {match[1] for match in _PLACEHOLDER.finditer(text)}
    is_agentv = any(name.isupper() for name in names)
    known = [*PLACEHOLDERS, *AGENTV_PLACEHOLDERS]
    # In a line for a shell, `{a,b}` and `{name}` may be the shell's.
    unknown = sorted({name for name in names if name.isupper() or not is_agentv}.difference(known))
    if unknown:
        listed = ", ".join(f"{{{known_one}}}" for known_one in known)
        raise UsageError(f"unknown placeholder {{{unknown[0]}}} in the agent command; known: {listed}")
    if is_agentv:
        for name in _OF_A_FILE.findall(files_format):
            if name not in {"path", "basename"}:
                raise UsageError(f"unknown placeholder {{{name}}} in files_format; known: {{path}}, {{basename}}")
        return AgentVLine(text, files_format)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the agent command {text!r} cannot be split into words: {error}") from error
    places.refuse_misplaced(text, words)
    refuse_missing(words[0], places)
    return Words(tuple(words))


def refuse_missing(program: str, places: Places, remedy: str = "check --agent and PATH") -> None:
    """Raise `UsageError` for a missing program of the machine or the repository. A relative path may come with the
    sandbox. `remedy` is that of a bare name.
    """
    place = program.replace("{project}", str(places.project))
    if "{" in place:
        return
    if "/" in place and not place.startswith("/"):
        if places.start is None:
            return
        place = str(places.start / place)
    if shutil.which(place, path=search_path()) is not None:
        return
    if "/" not in place:
        why = f"is not on this machine: {remedy}"
    elif Path(place).is_file():
        why = f"cannot be run: `chmod +x {place}`"
    else:
        looked = f"there is no file {place}" if place != program else "there is no such file"
        why = f"is not on this machine: {looked}; check --agent"
    raise UsageError(f"the agent command {program!r} {why}")


_Amount = Annotated[
    float, Field(le=MOST, allow_inf_nan=False), AfterValidator(lambda amount: None if amount < 0 else amount)
]
"""AgentV takes a negative one for an unknown one."""


class _ReportedCall(BaseModel):
    tool: str
    input: Any = None
    output: Any = None
    status: Literal["ok", "error", "timeout", "cancelled", "unknown"] | None = None
    duration_ms: _Amount | None = None


class _Message(BaseModel):
    role: str
    content: Any = None
    tool_calls: tuple[_ReportedCall, ...] | None = None
    duration_ms: _Amount | None = None


class _Tokens(BaseModel):
    input: Tokens
    output: Tokens
    cached: Tokens | None = None


class _Answer(BaseModel):
    messages: tuple[_Message, ...] = ()
    text: Any = None
    error: str | None = None
    token_usage: _Tokens | None = None
    cost_usd: _Amount | None = None


def agentv_transcript(content: str) -> Transcript:
    """Return a transcript from what an agent wrote for AgentV. JSON without messages (`output`, `output_messages`) and
    without `text` is the answer itself, as everything else is.

    An agent that reports an `error` has crashed. Raises `MeasurementError` for invalid messages.
    """
    try:
        document = read_json(content)
    except ValueError:
        document = None
    told = document if isinstance(document, dict) else {}
    lists = [value for key in ("output", "output_messages") if isinstance(value := told.get(key), list) and value]
    listed = next((value for value in lists if isinstance(value[0], dict) and "role" in value[0]), ())
    if not listed and "text" not in told:
        return read_transcript(content.strip())
    try:
        answer = _Answer.model_validate({**told, "messages": listed})
    except ValidationError as error:
        raise MeasurementError(f"not an output of AgentV: {first_problem(error)}") from error
    used = answer.token_usage
    tokens = {"tokens_in": used.input, "tokens_cached": used.cached, "tokens_out": used.output} if used else {}
    usage = Usage(**tokens, cost_usd=answer.cost_usd)
    if answer.messages:
        # What a message of the role `tool` says is with its call already.
        messages = [_message(message) for message in answer.messages if message.role in _ROLES]
        transcript = read_transcript({"messages": messages, "usage": usage})
    else:
        transcript = read_transcript(as_text(answer.text)).model_copy(update={"usage": usage})
    if answer.error:
        return transcript.model_copy(
            update={"end": EndReason.CRASHED, "detail": beginning(answer.error, LONGEST_DETAIL)}
        )
    return transcript


def _message(message: _Message) -> dict[str, Any]:
    content, calls = message.content, []
    if isinstance(content, list):
        texts = [block.get("text", block.get("value")) if isinstance(block, dict) else block for block in content]
        content = "\n".join(text for text in texts if isinstance(text, str))
    for call in message.tool_calls or ():
        given = {} if call.input is None else call.input
        arguments = given if isinstance(given, dict) else {"unparsed": given}
        told = {"result": call.output, "is_error": call.status in _FAILED, "duration_ms": call.duration_ms}
        calls.append(ToolCall(tool=call.tool, arguments=arguments, **told))
    text = "" if content is None else as_text(content)
    return {"role": message.role, "content": text, "tool_calls": calls, "latency_ms": message.duration_ms}
