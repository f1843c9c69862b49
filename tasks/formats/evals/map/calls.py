"""Tool calls in the messages of eval files: those of OpenAI and those of AgentV."""

from typing import Any

from passgate.tasks.formats.evals.read.node import Complaints, Key, Node, as_items, as_number, as_text, take_apart
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.messages import MessageCall

OPENAI_CALL_KEYS = {
    "id": Key((Kind.TEXT,)),
    "type": Key((Kind.TEXT,)),
    "function": Key((Kind.MAPPING,), needed=True),
    "index": Key((Kind.NUMBER,)),
}
FUNCTION_KEYS = {"name": Key((Kind.TEXT,), needed=True), "arguments": Key((Kind.TEXT, Kind.MAPPING))}
AGENTV_CALL_KEYS = {
    "tool": Key((Kind.TEXT,), spellings=("name",), needed=True),
    "arguments": Key(spellings=("input", "args")),
    "result": Key(spellings=("output",)),
    "id": Key(),
    "status": Key((Kind.TEXT,)),
    "start_time": Key(),
    "end_time": Key(),
    "duration_ms": Key((Kind.NUMBER,)),
    "error": Key(),
    "metadata": Key(),
}


def read_calls(node: Node | None, complaints: Complaints) -> tuple[MessageCall, ...]:
    """The tool calls of one message; what is wrong with them is a problem."""
    calls = (_call(item, complaints) for item in as_items(node))
    return tuple(call for call in calls if call is not None)


def _call(node: Node, complaints: Complaints) -> MessageCall | None:
    return _of_openai(node, complaints) if "function" in node.value else _of_agentv(node, complaints)


def _of_openai(node: Node, complaints: Complaints) -> MessageCall | None:
    call = take_apart(node, OPENAI_CALL_KEYS, complaints)
    if not call.sound:
        return None
    function = take_apart(call.values["function"], FUNCTION_KEYS, complaints)
    tool = as_text(function.get("name"))
    arguments = _arguments(function.get("arguments"), complaints)
    return MessageCall(id=call.value("id", ""), tool=tool, arguments=arguments) if tool else None


def _of_agentv(node: Node, complaints: Complaints) -> MessageCall | None:
    call = take_apart(node, AGENTV_CALL_KEYS, complaints)
    tool = as_text(call.get("tool"))
    if not call.sound or tool is None:
        return None
    return MessageCall(
        id=str(call.value("id", "")),
        tool=tool,
        arguments=_arguments(call.get("arguments"), complaints),
        result=call.value("result"),
        duration_ms=as_number(call.get("duration_ms"), complaints),
    )


def _arguments(node: Node | None, complaints: Complaints) -> dict[str, Any]:
    """Arguments by name; a value without a name is that of `input`."""
    if node is None:
        return {}
    value = node.value
    if isinstance(value, str) and node.path[-1] == "arguments":
        try:
            value = parse_json(value or "{}")
        except ValueError as error:
            complaints.problems.append(node.problem(f"arguments are a mapping, also as a JSON text: {error}"))
            return {}
        if not isinstance(value, dict):
            complaints.problems.append(node.problem("arguments are a mapping, also as a JSON text"))
            return {}
    return value if isinstance(value, dict) else {"input": value}
