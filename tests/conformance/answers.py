"""What the agent had said when AgentV graded it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from passgate.tasks.agents.commands import agentv_transcript
from passgate.tasks.model.messages import MessageCall
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from tests.conformance.rows import Row

ORACLE_USAGE: Final = Usage(tokens_in=100, tokens_out=50, cost_usd=0.01)
ORACLE_SECONDS: Final = 1.2
_FIXTURES: Final = ("trials", "compat", "include", "runs")
"""Fixtures whose answers several eval files share, by the beginning of the file's name."""


def transcripts(row: Row, task: EvalTask, corpus: Path) -> list[Transcript]:
    """What the agent did, one transcript per trial; empty where the corpus does not say it. A trial that crashed has a
    transcript of its own kind: one that is not complete.
    """
    if row.answer is not None:
        return [_oracle(row.answer, task)]
    return [_conversation(_scripted(value), task) for value in _fixture(row, corpus)]


def _conversation(transcript: Transcript, task: EvalTask) -> Transcript:
    """The same answer to every message of a scripted user."""
    if not transcript.messages or not any(grader.type == "turns" for grader in task.graders):
        return transcript
    answer = transcript.steps or (Message(role="assistant", content=transcript.output),)
    asked = [message.text for message in task.messages] or [task.prompt]
    messages = [Message(role="user", content=text) for text in asked] + [*answer]
    for text in task.user.says if task.user else ():
        messages += [Message(role="user", content=text), *answer]
    return transcript.model_copy(update={"messages": tuple(messages)})


def _oracle(answer: str, task: EvalTask) -> Transcript:
    calls = tuple(_call(call) for message in task.expected_messages for call in message.tool_calls)
    said = Message(role="assistant", content=answer, tool_calls=calls)
    return _asked(task, said).model_copy(update={"usage": ORACLE_USAGE, "wall_time_seconds": ORACLE_SECONDS})


def _asked(task: EvalTask, said: Message) -> Transcript:
    return Transcript(messages=(Message(role="user", content=task.prompt), said), output=said.content)


def _call(call: MessageCall) -> ToolCall:
    return ToolCall(tool=call.tool, arguments=call.arguments)


def _fixture(row: Row, corpus: Path) -> Iterator[Any]:
    """The answers of the scripted agent of the probes: one for all trials, or one per trial."""
    probes, _, rest = row.path.partition("/evals/")
    folder = corpus / probes / "fix"
    suite = rest.removesuffix(".eval.yaml")
    names = [suite, *(name for name in _FIXTURES if suite.startswith(name)), *_ALIASES.get(suite, ())]
    file = next((folder / f"{name}.json" for name in names if (folder / f"{name}.json").is_file()), None)
    if file is None:
        return
    answers = json.loads(file.read_text(encoding="utf-8"))
    value = answers.get(row.test_id, answers.get("*"))
    if value is not None:
        yield from value if isinstance(value, list) else [value]


_ALIASES: Final = {
    "determ": ("deterministic",),
    "exp_include": ("include",),
    "exp_repeat": ("trials",),
    "exp_runs": ("runs", "trials"),
}


def _scripted(value: Any) -> Transcript:
    if isinstance(value, dict) and "__exit" in value:
        return Transcript(complete=False)
    transcript = agentv_transcript(value if isinstance(value, str) else json.dumps(value))
    milliseconds = value.get("duration_ms") if isinstance(value, dict) else None
    return transcript.model_copy(update={"wall_time_seconds": (milliseconds or 0) / 1000})
