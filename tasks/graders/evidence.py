"""Read a finished trial: what counts as a tool call, as the final answer and as JSON in it is said here alone.

What counts as a tool call:

- every call in the messages of the transcript, in their order. That is what the model asked for, whatever ran it: the
  agent, passgate, or a sub-agent whose model calls the meter saw;
- also one that was refused. It was asked for, so a rule on what must not be sees it; it was not made, so it fulfils
  nothing. `Evidence.calls` tells them apart;
- not what a client writes beside a tool's result, such as a reminder: that is text of the conversation.

A tool that passgate offers has the task's name for it in the transcript, whatever a client calls it. A client's own
tools keep the client's names, with a server or a namespace before them; `tool_matches` looks past these.
"""

import re
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.agent import AgentKind
from passgate.tasks.model.grade import LlmJudge, RawGrade
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.sandbox import Sandbox
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import ToolCall, Transcript
from passgate.tasks.model.trial import TrialMetrics

# A server or a namespace stands before the name: mcp__crm__delete, crm.delete, crm/delete, functions:delete.
_SEPARATOR: Final = re.compile(r"__|[./:]")
_METER: Final = "Send the agent's model calls through the passgate meter"
_FILE: Final = "have the agent write its transcript, with usage and times, to the file that PASSGATE_TRANSCRIPT names"
_RETURNED: Final = "return a transcript, with usage and times, from its function"
_REMEDIES: Final = {
    AgentKind.CLI: f"{_METER}, or {_FILE}",
    AgentKind.PYTHON: f"{_METER}, or {_RETURNED}",
    AgentKind.HTTP: "In agents.yaml, name the fields of the reply that hold them: `http.tool_calls` with "
    "`http.complete: true`, `http.tokens_in`, `http.tokens_out`, `http.cost_usd`",
}


class UnreportedError(MeasurementError):
    """Something of a trial that a grader needs was not reported. The text says what."""


def remedy_for(kind: AgentKind | None) -> str:
    """Return how an agent of a kind reports what is not known of its trials."""
    if kind is None:
        return f"{_METER}, {_FILE}, or {_RETURNED}"
    return _REMEDIES.get(kind, "Use a recording that contains it")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One finished trial: what the agent said and did, and the state that it left behind."""

    task: EvalTask
    transcript: Transcript
    metrics: TrialMetrics
    sandbox: Sandbox
    suites_folder: Path
    masker: Masker  # Of the run's secrets
    judge: LlmJudge | None  # `None` when no judge is configured
    agent_kind: AgentKind | None = None  # Of the agent that had the trial; `None` where that is not known

    @property
    def final_answer(self) -> str:
        """What the agent says last: what it reports as its answer, else its last message."""
        return self.transcript.output

    @property
    def json_answer(self) -> Any:
        """The JSON object or list in the final answer. Raises `ValueError` when there is none."""
        return json_in(self.final_answer)

    def calls(self, *, refused: bool) -> list[ToolCall]:
        """Return the tool calls in their order, with those that were refused or without."""
        return [call for call in self.transcript.tool_calls if refused or not call.refused]

    def require_every_call(self, *, unless: bool = False) -> None:
        """Raise `UnreportedError` when the transcript may lack a call, unless the result is certain whatever it is."""
        if not self.transcript.complete and not unless:
            raise UnreportedError("the agent does not report its tool calls")


GradeFunction = Callable[[Any, Evidence], Awaitable[RawGrade]]
"""Computes the bare grade of one type of grader from its options and a trial."""


def json_in(text: str) -> Any:
    """Return the JSON object or list in a text: all of it, else a code block, else from the first `{` to the last `}`.

    Raises `ValueError` when there is none.
    """
    # The first line of a code block names the language.
    blocks = (block.partition("\n")[2] for block in text.split("```")[1::2])
    for part in (text, *blocks, text[text.find("{") : text.rfind("}") + 1]):
        try:
            document = parse_json(part)
        except ValueError:
            continue
        if isinstance(document, dict | list):
            return document
    raise ValueError("the answer contains no JSON object or list")


class _Unseen(dict[int, int | None]):
    """For `str.translate`: takes away what has no width, and leaves white space."""

    def __missing__(self, code: int) -> int | None:
        sign = chr(code)
        is_seen = sign.isspace() or unicodedata.category(sign) not in {"Cf", "Cc"}
        self[code] = code if is_seen else None
        return self[code]


_UNSEEN: Final = _Unseen()


def plain(text: str, space: str = "") -> str:
    """Return a text without what the eye does not see: compatible characters, cases, zero-width signs, kinds of white
    space. Each run of white space becomes `space`.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return space.join(folded.translate(_UNSEEN).split())


cached_plain = lru_cache(maxsize=4096)(plain)


def tool_matches(pattern: str, tool: str) -> bool:
    """Return whether a pattern, with `*`, `?` and `[...]` as in file names, means a tool by its name.

    The server and the namespaces before the name may be left out; cases and what the eye does not see do not matter.
    """
    pattern, name = cached_plain(pattern), cached_plain(tool)
    if fnmatchcase(name, pattern):
        return True
    parts = _SEPARATOR.split(name)
    ends = (".".join(parts[start:]) for start in range(len(parts)))
    dotted = _SEPARATOR.sub(".", pattern)
    return any(fnmatchcase(end, dotted) for end in ends)
