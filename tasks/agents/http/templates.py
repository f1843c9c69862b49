"""Requests with placeholders: JSON values whose texts hold `{{ prompt }}` and the like."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, Final

from passgate.tasks.agents.foreign import as_text
from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.openai.asked import asked_messages
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.metering.access import ModelAccess
from passgate.tasks.model.json_values import MISSING, at_path

PLACEHOLDERS: Final = (
    *("prompt", "messages", "inputs", "session", "task_id", "trial", "turn"),
    *("openai_base_url", "anthropic_base_url", "api_key"),
)
_INPUT: Final = "inputs."
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def check_template(template: Any, where: str) -> None:
    """Raises `UsageError` for a placeholder that is not known, anywhere in a JSON value."""
    if isinstance(template, Mapping):
        for key, value in template.items():
            check_template(value, f"{where}.{key}")
    elif isinstance(template, list | tuple):
        for index, value in enumerate(template):
            check_template(value, f"{where}.{index}")
    elif isinstance(template, str):
        for name in _PLACEHOLDER.findall(template):
            if not name.startswith(_INPUT):
                check_name(name, where, PLACEHOLDERS)


def check_name(name: str, where: str, known: Collection[str]) -> None:
    """Raises `UsageError` for a placeholder that is not known."""
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"; did you mean {{{{ {close[0]} }}}}?" if close else "."
        raise UsageError(f"{where}: unknown placeholder {{{{ {name} }}}}{hint} Known: {', '.join(known)}")


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with every placeholder replaced.

    A text that is one placeholder becomes its value; inside a longer text what is no text is written as JSON. Raises
    `MeasurementError` for an input that the task does not have.
    """
    if isinstance(template, Mapping):
        return {key: filled(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    if whole := _PLACEHOLDER.fullmatch(template):
        return _value(whole[1], values)
    return _PLACEHOLDER.sub(lambda match: as_text(_value(match[1], values)), template)


def _value(name: str, values: Mapping[str, Any]) -> Any:
    value = at_path(values, name) if name.startswith(_INPUT) else values[name]
    if value is MISSING:
        raise MeasurementError(f"the agent's request holds {{{{ {name} }}}}, which the task {values['task_id']} lacks")
    return value


def values_of(attempt: Attempt, access: ModelAccess) -> dict[str, Any]:
    """What the placeholders stand for in one turn of a trial."""
    return _Values(
        attempt,
        {
            "prompt": attempt.prompt,
            "inputs": attempt.inputs,
            "session": attempt.session,
            "task_id": attempt.task_id,
            "trial": attempt.trial,
            "turn": attempt.turn,
            "openai_base_url": access.openai_base_url,
            "anthropic_base_url": access.anthropic_base_url,
            "api_key": access.api_key,
        },
    )


class _Values(dict[str, Any]):
    """The values, with the messages made when they are asked for: images are read for agents that want them only."""

    def __init__(self, attempt: Attempt, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._attempt = attempt

    def __missing__(self, name: str) -> Any:
        if name != "messages":
            raise KeyError(name)
        return _messages(self._attempt)


def _messages(attempt: Attempt) -> list[dict[str, Any]]:
    """The whole conversation, with what the user says now."""
    asked = asked_messages(attempt.messages, attempt.files)
    before = attempt.history_since_messages if asked else attempt.history
    said = [{"role": message.role, "content": message.content} for message in before if message.content]
    now = [] if asked and not attempt.history else [{"role": "user", "content": attempt.prompt}]
    return [*asked, *said, *now]
