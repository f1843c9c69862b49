"""The commands of passgate by their names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer

from passgate.flows.cli import app

_GROUP: Any = typer.main.get_command(app)
_TOP: Mapping[str, Any] = {name: _GROUP.get_command(None, name) for name in _GROUP.commands}


def _leaves(commands: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, command in commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {below}", one) for below, one in _leaves(inner))


COMMANDS: Mapping[str, Any] = dict(_leaves(_TOP))
"""All of them; those of a group as in `baseline show`."""
GROUPS = {name for name in _TOP if name not in COMMANDS}
"""The first words of groups."""


def command_of(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The name of the command that a line gives after `passgate`, and the rest of the line."""
    length = 2 if words[0] in GROUPS else 1
    return " ".join(words[:length]), words[length:]
