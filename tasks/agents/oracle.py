"""The two agents that prove graders: `oracle` must pass every task, `nop` must fail every task."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Self

from passgate.tasks.agents.interface import Agent, AgentSandbox, Attempt
from passgate.tasks.agents.transcripts import read_transcript_file
from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.access import ModelAccess
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.quotes import quote_end, raw
from passgate.tasks.model.sandbox import ProcessResult
from passgate.tasks.model.task import EvalTask, Solution
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage

_NO_MODEL = Usage(tokens_in=0, tokens_out=0, cost_usd=0.0)
_NO_ANSWER = " and no expected output"
_CLOSING = "The reference solution is in place."


class NopAgent(Agent):
    """Does nothing and says nothing."""

    has_conversations = False

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        return Transcript(messages=(_asked(task),), usage=_NO_MODEL)


@dataclass(frozen=True)
class OracleAgent(Agent):
    """Applies a task's reference solution, or one of its counterexamples by name. A task without a reference solution
    is answered with its expected output.
    """

    has_conversations = False
    suites_folder: Path
    counterexample: str | None

    @classmethod
    def from_spec(cls, spec: AgentSpec, suites_folder: Path) -> Self:
        return cls(suites_folder, spec.target or None)

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        has_answer = bool(task.expected_messages) or task.expected_output is not None
        if self.counterexample is None and task.reference is None and has_answer:
            # As an agent would say it; the output is the last text of an assistant.
            said = _expected(task.expected_messages) or (Message(role="assistant", content=task.reference_answer),)
            output = next((told.content for told in reversed(said) if told.role == "assistant" and told.content), "")
            return Transcript(messages=(_asked(task), *said), output=output, usage=_NO_MODEL)
        solution = self._solution(task)
        calls = []
        if solution.patch:
            # Without the ceiling, git would apply the patch to a repository that the temporary folder lies in.
            result = await sandbox.run(
                ["git", "apply", "-p1", "--whitespace=nowarn", "-"],
                seconds=seconds,
                stdin=(self.suites_folder / solution.patch).read_bytes(),
                environment={"GIT_CEILING_DIRECTORIES": str(sandbox.workspace.parent)},
            )
            calls.append(_call("apply_patch", {"patch": solution.patch}, result))
        if solution.script:
            copy = sandbox.scratch / "reference.sh"
            copy.write_bytes((self.suites_folder / solution.script).read_bytes())
            result = await sandbox.run(["sh", str(copy)], seconds=seconds, network=sandbox.network)
            calls.append(_call("run_script", {"script": solution.script}, result))
        if solution.transcript:
            recorded = read_transcript_file(self.suites_folder / solution.transcript)
            if recorded is None:
                raise MeasurementError(f"no recorded transcript {solution.transcript}")
            return recorded
        closing = Message(role="assistant", content=_CLOSING)
        messages = (_asked(task), Message(role="assistant", tool_calls=tuple(calls)), closing)
        return Transcript(messages=messages, output=_CLOSING, usage=_NO_MODEL)

    def _solution(self, task: EvalTask) -> Solution:
        if task.reference is None:
            raise MeasurementError(f"{task.file} has no `reference:`{_NO_ANSWER}, so the oracle has nothing to do")
        if self.counterexample is None:
            return task.reference.solution
        named = {example.name: example for example in task.reference.counterexamples}
        if self.counterexample not in named:
            known = ", ".join(named) or "none"
            raise MeasurementError(f"{task.file} has no counterexample {self.counterexample!r}; it has {known}")
        return named[self.counterexample]


def _call(tool: str, arguments: dict[str, str], result: ProcessResult) -> ToolCall:
    if result.timed_out or result.exit_code != 0:
        how = "ran out of time" if result.timed_out else f"exited {result.exit_code}"
        raise MeasurementError(raw(f"{tool} {json.dumps(arguments)} {how}: ", quote_end(result.stderr, 500)))
    return ToolCall(tool=tool, arguments=arguments, result=result.stdout)


def _asked(task: EvalTask) -> Message:
    return Message(role="user", content=task.prompt)


def _expected(messages: Sequence[TaskMessage]) -> tuple[Message, ...]:
    """Return expected messages as those of a transcript, in which what a tool says is the result of its call."""
    expected = []
    for number, message in enumerate(messages, start=1):
        if message.role == "tool":
            continue
        answers = list(takewhile(lambda later: later.role == "tool", messages[number:]))
        calls = []
        for position, call in enumerate(message.tool_calls):
            named = [answer for answer in answers if call.id and answer.tool_call_id == call.id]
            text = next((answer.text for answer in named or answers[position : position + 1]), None)
            result = text if call.result is None else call.result
            duration = call.duration_ms if call.duration_ms is not None and call.duration_ms >= 0 else None
            calls.append(ToolCall(tool=call.tool, arguments=call.arguments, result=result, duration_ms=duration))
        expected.append(Message(role=message.role, content=message.text, tool_calls=tuple(calls)))
    return tuple(expected)
