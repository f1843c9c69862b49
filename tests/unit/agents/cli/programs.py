"""Programs as agents."""

import sys
import textwrap

from passgate.tasks.agents.cli.agent import CliAgent
from passgate.tasks.agents.cli.commands import Words
from passgate.tasks.agents.cli.places import Places


def python(program: str, *arguments: str) -> CliAgent:
    """An agent that is a Python program with these arguments."""
    return CliAgent(Words((sys.executable, "-c", textwrap.dedent(program), *arguments)), Places.of(None))
