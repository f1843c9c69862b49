"""What a code grader is given: one JSON object that speaks AgentEvals' contract and AgentV's at once."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.evidence import Evidence
from passgate.tasks.model.messages import MessageCall, TaskMessage
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import FileChanges, Message, ToolCall, Transcript

_OF_THE_PROMPT: Final = ("prompt", "messages", "vars")


def plain_task_message(message: TaskMessage) -> dict[str, Any]:
    """Return a message of a task: `role` and `content`, a text or blocks, and what else it has."""
    content: Any = message.content
    if not isinstance(content, str):
        content = [{"type": block.type, "value": block.value} | _drop_none(text=block.text) for block in content]
    plain = {"role": message.role, "content": content}
    plain |= _drop_none(name=message.name, tool_call_id=message.tool_call_id)
    if message.tool_calls:
        plain["tool_calls"] = [_drop_none(id=call.id or None) | _plain(call) for call in message.tool_calls]
    return plain


def plain_message(message: Message) -> dict[str, Any]:
    """Return a message of a transcript: `role`, `content` and `tool_calls`, each with AgentV's word for its status."""
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        plain["tool_calls"] = [_add_status(call) for call in message.tool_calls]
    return plain


def _add_status(call: ToolCall) -> dict[str, Any]:
    status = {None: "unknown", True: "error", False: "ok"}[True if call.refused else call.is_error]
    return _plain(call) | {"status": status}


def _plain(call: ToolCall | MessageCall) -> dict[str, Any]:
    # OpenAI's messages have the call under `function`, its arguments as a JSON text.
    function = {"name": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
    plain = {"tool": call.tool, "input": call.arguments, "output": call.result, "type": "function"}
    return plain | {"function": function} | _drop_none(duration_ms=call.duration_ms)


def _drop_none(**entries: Any) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value is not None}


def code_input(evidence: Evidence, config: Mapping[str, Any], output_path: Path | None) -> dict[str, Any]:
    """Return the document for a program's standard input: snake_case keys as AgentV's, camelCase ones as AgentEvals'.

    What a trial does not say is null: the tool calls of an agent that only prints text, its usage, changed files.
    `output_path` is a file with the answer, for programs that would rather open one; without one there is no such key.
    """
    task, transcript = evidence.task, evidence.transcript
    blocks = [block for message in task.messages if not isinstance(message.content, str) for block in message.content]
    snake = {
        "criteria": task.criteria,
        "expected_output": expected_messages(task),
        "output": transcript.output,
        "messages": conversation(evidence),
        "input": [plain_task_message(message) for message in input_messages(task)],
        "input_files": [str(evidence.suites_folder / str(block.value)) for block in blocks if block.type == "file"],
        "metadata": task.metadata,
        "vars": task_variables(task),
        # Of a transcript that may lack calls nothing is counted: a count too low would be taken for the truth.
        "trace": _trace(evidence) if transcript.complete else None,
        "trace_summary": _summary(transcript) if transcript.complete else None,
        **_figures(evidence),
        "start_time": None,
        "end_time": None,
        "file_changes": changes_text(evidence) or None,
        "workspace_path": str(evidence.sandbox.workspace),
        "config": dict(config),
        **_drop_none(output_path=None if output_path is None else str(output_path)),
    }
    # AgentV's SDK makes one camelCase key of two such as `traceSummary` and `trace_summary`, and keeps the later value.
    return _agentevals(snake, evidence) | snake


def changes_text(evidence: Evidence) -> str:
    """Return the changed files of the workspace as unified diffs, and one line for a file without a diff."""
    changes = evidence.transcript.file_changes or FileChanges()
    texts = [one.diff or f"{one.change}: {one.path}, not shown as text" for one in changes.files]
    return "\n".join([*texts, changes.remark] if changes.remark else texts)


def encode(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON. Raises `MeasurementError` when it is nested too deep."""
    try:
        # ASCII, because half of a surrogate pair is no UTF-8.
        return json.dumps(document, default=str).encode("ascii")
    except (RecursionError, ValueError) as error:
        raise MeasurementError(f"the trial cannot be written as JSON: {error}") from error


def task_variables(task: EvalTask) -> dict[str, Any]:
    """Return the variables of a task: what its inputs hold beside what the agent is asked."""
    beside = {name: value for name, value in task.inputs.items() if name not in _OF_THE_PROMPT}
    own = task.inputs.get("vars")
    return beside | (own if isinstance(own, dict) else {})


def _agentevals(snake: Mapping[str, Any], evidence: Evidence) -> dict[str, Any]:
    summary = snake["trace_summary"]
    camel_summary = summary and {
        "eventCount": summary["event_count"],
        "toolNames": sorted(summary["tool_calls"]),
        "toolCallsByName": summary["tool_calls"],
        "errorCount": summary["error_count"],
        "tokenUsage": snake["token_usage"],
        "costUsd": snake["cost_usd"],
        "durationMs": snake["duration_ms"],
    }
    return {
        "question": evidence.task.prompt,
        "note": evidence.task.note,
        "expectedMessages": snake["expected_output"],
        "referenceAnswer": evidence.task.reference_answer,
        "candidateAnswer": evidence.final_answer,
        "outputMessages": [plain_message(step) for step in evidence.transcript.steps],
        "inputMessages": snake["input"],
        "inputFiles": snake["input_files"],
        "guidelineFiles": [],
        "traceSummary": camel_summary,
        "workspacePath": snake["workspace_path"],
    }


def input_messages(task: EvalTask) -> tuple[TaskMessage, ...]:
    """Return what the agent is asked as messages."""
    return task.messages or (TaskMessage(role="user", content=task.prompt),)


def conversation(evidence: Evidence) -> list[dict[str, Any]]:
    """Return the conversation from what the agent was asked on, also where the transcript does not hold that."""
    messages = evidence.transcript.messages
    asked = any(message.role == "user" for message in messages)
    before = () if asked else input_messages(evidence.task)
    said = messages or (Message(role="assistant", content=evidence.final_answer),)
    return [*map(plain_task_message, before), *map(plain_message, said)]


def expected_messages(task: EvalTask) -> list[dict[str, Any]]:
    """Return the answer that is hoped for as messages; a text or a JSON value is the one message of an assistant."""
    if task.expected_messages:
        return [plain_task_message(message) for message in task.expected_messages]
    value = task.expected_output
    if value is None:
        return []
    # The content of a message is a text, a mapping or a list of mappings.
    blocks = value if isinstance(value, list) else [value]
    is_content = isinstance(value, str) or all(isinstance(block, dict) for block in blocks)
    return [{"role": "assistant", "content": value if is_content else json.dumps(value, ensure_ascii=False)}]


def _figures(evidence: Evidence) -> dict[str, Any]:
    """Return what the trial used and how long it took, in AgentV's words; null where that is not known."""
    usage, seconds = evidence.transcript.whole_usage, evidence.metrics.wall_time_seconds
    tokens = None
    if usage.tokens_in is not None and usage.tokens_out is not None:
        tokens = {"input": usage.tokens_in, "output": usage.tokens_out} | _drop_none(cached=usage.tokens_cached)
    return {
        "token_usage": tokens,
        "cost_usd": usage.cost_usd if evidence.metrics.cost is None else evidence.metrics.cost,
        "duration_ms": None if seconds is None else round(seconds * 1000),
    }


def _summary(transcript: Transcript) -> dict[str, Any]:
    calls, durations = transcript.tool_calls, defaultdict[str, list[float]](list)
    for call in calls:
        if call.duration_ms is not None:
            durations[call.tool].append(call.duration_ms)
    return {
        "event_count": len(calls),
        "tool_calls": dict(Counter(call.tool for call in calls)),
        "error_count": sum(call.is_error is True or call.refused for call in calls),
        "tool_durations": dict(durations),
        "llm_call_count": len(transcript.steps),
    }


def _trace(evidence: Evidence) -> dict[str, Any]:
    """Return the trace in AgentV's words, in which what is not known is left out."""
    return {
        **_summary(evidence.transcript),
        "messages": conversation(evidence),
        "events": [{"ordinal": number, **event} for number, event in enumerate(_events(evidence.transcript))],
        **_drop_none(**_figures(evidence)),
        "metadata": {"eval_case_id": evidence.task.own_id},
    }


def _events(transcript: Transcript) -> Iterator[dict[str, Any]]:
    for index, message in enumerate(transcript.messages):
        said = {"role": message.role, "content": message.content}
        yield {"event_id": f"message-{index}", "type": "message", "message": said}
        for number, call in enumerate(message.tool_calls):
            plain = _add_status(call)
            tool = {"name": call.tool, "input": plain["input"], "output": plain["output"], "status": plain["status"]}
            event = {"event_id": f"message-{index}-tool-{number}", "type": "tool_call", "tool": tool}
            yield event | _drop_none(duration_ms=call.duration_ms)
    said = {"role": "assistant", "content": transcript.output}
    yield {"event_id": "final-response", "type": "final_response", "message": said}
