"""The variables of judges' prompts, in AgentEvals' words and in AgentV's, and putting them in."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.graders.judges.conversation import LONGEST_PART
from passgate.tasks.graders.programs.code_input import expected_messages, input_messages, messages_of, variables_of
from passgate.tasks.graders.programs.plain_messages import plain_message, plain_task_message
from passgate.tasks.graders.texts import as_json, shorten
from passgate.tasks.model.json_values import MISSING, at_path
from passgate.tasks.model.messages import as_prompt

_PLACEHOLDER: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\}\}")


class Variable(NamedTuple):
    """What a variable stands for."""

    text: str
    is_material: bool
    """Whether it is what is marked, and not the words of whoever wrote the task."""
    shows_work: bool = False
    """Whether it is of what the agent said and did."""


def variables_in(template: str, evidence: Evidence, further: Mapping[str, Variable]) -> dict[str, Variable]:
    """The known variables that a template names; `further` are some beside those of every trial.

    Raises `MeasurementError` for `file_changes`, which nobody records.
    """
    names = dict.fromkeys(match[1] for match in _PLACEHOLDER.finditer(template))
    found = {name: _variable(name, evidence, further) for name in names}
    return {name: variable for name, variable in found.items() if variable is not None}


def filled(template: str, variables: Mapping[str, Variable], marker: str) -> str:
    """The template with its variables put in, in one go: nothing that is put in is looked at again, and what is not
    known stays as it is. Material stands between two lines of the marker.
    """

    def put_in(match: re.Match[str]) -> str:
        variable = variables.get(match[1])
        if variable is None:
            return match[0]
        return f"{marker}\n{variable.text}\n{marker}" if variable.is_material else variable.text

    return _PLACEHOLDER.sub(put_in, template)


def _variable(name: str, evidence: Evidence, further: Mapping[str, Variable]) -> Variable | None:
    if name in further:
        return further[name]
    if name in _WORK:
        return Variable(shorten(_WORK[name](evidence), LONGEST_PART), is_material=True, shows_work=True)
    if name in _QUESTION:
        return Variable(shorten(_QUESTION[name](evidence), LONGEST_PART), is_material=True)
    if name in _AUTHORS:
        return Variable(_AUTHORS[name](evidence), is_material=False)
    return _own(name, evidence)


def _own(name: str, evidence: Evidence) -> Variable | None:
    """A variable of the task: `vars.NAME`, `metadata.NAME`, or the bare name of a variable; dots lead further in."""
    variables = variables_of(evidence.task)
    document = {**variables, "vars": variables, "metadata": evidence.task.metadata}
    value = at_path(document, name)
    return None if value is MISSING else Variable(_text(value), is_material=False)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except RecursionError:
        raise MeasurementError("a value of the task is nested too deep") from None


def tool_calls_text(evidence: Evidence) -> str:
    """The tool calls, a line each: the tool, a colon, its arguments."""
    return "\n".join(
        f"{call.tool}: {as_json(call.arguments, 2000)}{' (error)' if call.is_error else ''}"
        for call in evidence.transcript.tool_calls
    )


def asked_text(evidence: Evidence) -> str:
    """What the agent was asked; in a conversation, all that was said before its last answer."""
    messages = evidence.transcript.messages
    asked = [position for position, message in enumerate(messages) if message.role == "user"]
    if len(asked) < 2:
        return evidence.task.prompt or as_prompt(input_messages(evidence.task))
    before = messages[: asked[-1] + 1]
    return "\n\n".join(f"@[{message.role.capitalize()}]:\n{message.content}" for message in before)


def _answer(evidence: Evidence) -> str:
    return evidence.transcript.output


def _output_messages(evidence: Evidence) -> str:
    return _json([plain_message(step) for step in evidence.transcript.steps])


def _file_changes(_evidence: Evidence) -> str:
    raise MeasurementError("the prompt asks for file_changes, which passgate does not record")


def _input_messages(evidence: Evidence) -> str:
    return _json([plain_task_message(message) for message in input_messages(evidence.task)])


def _reference(evidence: Evidence) -> str:
    return evidence.task.reference_answer


def _metadata(evidence: Evidence) -> str:
    return _json(evidence.task.metadata)


def _criteria(evidence: Evidence) -> str:
    return evidence.task.criteria


_WORK: Final[dict[str, Callable[[Evidence], str]]] = {
    "answer": _answer,
    "candidate_answer": _answer,
    "output": _answer,
    "outputs": _output_messages,
    "output_messages": _output_messages,
    "messages": lambda evidence: _json(messages_of(evidence)),
    "tool_calls": tool_calls_text,
    "file_changes": _file_changes,
}
_QUESTION: Final[dict[str, Callable[[Evidence], str]]] = {
    "question": asked_text,
    "input": asked_text,
    "input_messages": _input_messages,
}
_AUTHORS: Final[dict[str, Callable[[Evidence], str]]] = {
    "criteria": _criteria,
    "expected_outcome": _criteria,
    "reference_answer": _reference,
    "expected_output": _reference,
    "expected_messages": lambda evidence: _json(expected_messages(evidence.task)),
    "note": lambda evidence: evidence.task.note,
    "metadata": _metadata,
    "metadata_json": _metadata,
}
