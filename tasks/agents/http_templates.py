"""Requests and headers with placeholders: JSON values whose texts hold `{{ prompt }}` and the like."""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Self

from passgate.tasks.agents.chat_messages import task_chat
from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.transcripts import as_text
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.metering.access import ModelAccess
from passgate.tasks.model.json_values import MISSING, at_path
from passgate.tasks.providers.registry import PROVIDERS

_ADDRESSES: Final = tuple(provider.placeholder for provider in PROVIDERS.values())
PLACEHOLDERS: Final = (
    *("prompt", "messages", "inputs", "session", "task_id", "trial", "turn"),
    *_ADDRESSES,
    "api_key",
    "mcp_url",
)
_INPUT: Final = "inputs."
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
HEADER_PLACEHOLDERS: Final = ("session", "trial", "turn", *_ADDRESSES, "api_key", "mcp_url")
"""What is always fit for a header."""
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_IN_HEADER: Final = re.compile(r"(\$?)\{\{\s*([^{}]*?)\s*\}\}")


def check_template(template: Any, where: str) -> None:
    """Raise `UsageError` for an unknown placeholder anywhere in a JSON value."""
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
    """Raise `UsageError` for an unknown placeholder."""
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"; did you mean {{{{ {close[0]} }}}}?" if close else "."
        raise UsageError(f"{where}: unknown placeholder {{{{ {name} }}}}{hint} Known: {', '.join(known)}")


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return the template with every placeholder replaced.

    A text that is one placeholder becomes its value; inside a longer text, values that are not text are written as
    JSON. Raises `MeasurementError` for an input that the task does not have.
    """
    if isinstance(template, Mapping):
        return {key: fill(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill(value, values) for value in template]
    if not isinstance(template, str):
        return template
    if whole := _PLACEHOLDER.fullmatch(template):
        return _value(whole[1], values)
    return _PLACEHOLDER.sub(lambda match: as_text(_value(match[1], values)), template)


def _value(name: str, values: Mapping[str, Any]) -> Any:
    value = at_path(values, name) if name.startswith(_INPUT) else values[name]
    if value is MISSING:
        raise MeasurementError(f"the agent's request holds {{{{ {name} }}}}, which the task {values['task_id']} lacks")
    return value() if callable(value) else value


def placeholder_values(attempt: Attempt, access: ModelAccess) -> dict[str, Any]:
    """Return the values of the placeholders in one turn; a function returns its value when it is called."""

    def messages() -> list[dict[str, Any]]:
        """Return the whole conversation, with the user's new message."""
        asked = task_chat(attempt.messages, attempt.files)
        before = attempt.history_since_messages if asked else attempt.history
        said = [{"role": message.role, "content": message.content} for message in before if message.content]
        now = [] if asked and not attempt.history else [{"role": "user", "content": attempt.prompt}]
        return [*asked, *said, *now]

    return {
        "prompt": attempt.prompt,
        # Images are read only for agents that ask for the messages.
        "messages": messages,
        "inputs": attempt.inputs,
        "session": attempt.session,
        "task_id": attempt.task_id,
        "trial": attempt.trial,
        "turn": attempt.turn,
        **{PROVIDERS[name].placeholder: url for name, url in access.base_urls.items()},
        "api_key": access.api_key,
        "mcp_url": access.mcp_url,
    }


@dataclass(frozen=True)
class HeaderTemplates:
    """Headers with placeholders, and the variables that they name as they were when the agent was made."""

    templates: Mapping[str, str]
    variables: Mapping[str, str]

    @classmethod
    def from_templates(cls, templates: Mapping[str, str]) -> Self:
        """Raise `UsageError` for a variable that is not set, an unknown placeholder and an invalid header."""
        variables: dict[str, str] = {}
        for name, template in templates.items():
            where = f"http.headers.{name}"
            for dollar, variable in _IN_HEADER.findall(template):
                if not dollar:
                    check_name(variable, where, HEADER_PLACEHOLDERS)
                    continue
                if variable not in os.environ:
                    raise UsageError(f"{where}: the environment variable {variable} is not set")
                _check_text(os.environ[variable], f"{where}: the value of the environment variable {variable}")
                variables[variable] = os.environ[variable]
            if not _NAME.fullmatch(name):
                raise UsageError(f"{where}: {name!r} cannot be the name of a header")
            _check_text(_IN_HEADER.sub("", template), where)
        return cls(dict(templates), variables)

    def fill(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Return the headers of one turn."""

        def replaced(match: re.Match[str]) -> str:
            return self.variables[match[2]] if match[1] else str(values[match[2]])

        return {name: _IN_HEADER.sub(replaced, template) for name, template in self.templates.items()}


def _check_text(text: str, where: str) -> None:
    if not text.isascii() or not text.isprintable():
        raise UsageError(f"{where}: a header holds nothing but printable ASCII characters")
