"""HTTP headers whose values hold `${{ NAME }}`, an environment variable, or what differs from trial to trial."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from passgate.tasks.agents.http.templates import check_name
from passgate.tasks.errors import UsageError

PLACEHOLDERS: Final = ("session", "trial", "turn", "openai_base_url", "anthropic_base_url", "api_key")
"""What is always fit for a header."""
_SHORTEST_SECRET: Final = 6
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PLACEHOLDER: Final = re.compile(r"(\$?)\{\{\s*([^{}]*?)\s*\}\}")


@dataclass(frozen=True)
class HeaderTemplates:
    """Headers with placeholders, and the variables that they name as they were when the agent was made."""

    templates: Mapping[str, str]
    variables: Mapping[str, str]

    @classmethod
    def checked(cls, templates: Mapping[str, str]) -> Self:
        """Raises `UsageError` for a variable that is not set, an unknown placeholder and what is no header."""
        variables: dict[str, str] = {}
        for name, template in templates.items():
            where = f"http.headers.{name}"
            variables |= _variables(template, where)
            if not _NAME.fullmatch(name):
                raise UsageError(f"{where}: {name!r} cannot be the name of a header")
            _check_text(_PLACEHOLDER.sub("", template), where)
        return cls(dict(templates), variables)

    def filled(self, values: Mapping[str, Any]) -> dict[str, str]:
        """The headers of one turn."""

        def replaced(match: re.Match[str]) -> str:
            return self.variables[match[2]] if match[1] else str(values[match[2]])

        return {name: _PLACEHOLDER.sub(replaced, template) for name, template in self.templates.items()}

    def masked(self, text: str) -> str:
        """A text without the values of the variables, for messages."""
        for value in self.variables.values():
            if len(value) >= _SHORTEST_SECRET:
                text = text.replace(value, "***")
        return text


def _variables(template: str, where: str) -> dict[str, str]:
    variables = {}
    for dollar, name in _PLACEHOLDER.findall(template):
        if not dollar:
            check_name(name, where, PLACEHOLDERS)
            continue
        if name not in os.environ:
            raise UsageError(f"{where}: the environment variable {name} is not set")
        _check_text(os.environ[name], f"{where}: the value of the environment variable {name}")
        variables[name] = os.environ[name]
    return variables


def _check_text(text: str, where: str) -> None:
    if not text.isascii() or not text.isprintable():
        raise UsageError(f"{where}: a header holds nothing but printable ASCII characters")
