"""Programs as agents."""

import sys
import textwrap
from pathlib import Path
from typing import Any

from passgate.tasks.agents.cli import CliAgent
from passgate.tasks.agents.commands import Places, Words
from passgate.tasks.model.agent import AgentKind, AgentSpec


def cli_agent(command: str, suites_folder: Path | None = None, **settings: Any) -> CliAgent:
    """The agent of a command."""
    spec = AgentSpec(kind=AgentKind.CLI, target=command, **settings)
    return CliAgent.from_spec(spec, suites_folder or Path("no suites"))


def python(program: str, *arguments: str) -> CliAgent:
    """An agent that is a Python program with these arguments."""
    return CliAgent(Words((sys.executable, "-c", textwrap.dedent(program), *arguments)), Places.of(None))
