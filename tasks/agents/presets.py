"""Agents that people run, as entries for agents.yaml."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import TypeAdapter

from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.base import Frozen, Text


class Preset(Frozen):
    """How an agent runs as a command, with its models behind the meter and the task's tools over MCP."""

    title: Text
    package: Text
    """The npm package that installs its program."""
    program: Text
    agent: Text
    variables: dict[str, str] = {}
    key: Text
    """The environment variable with the key of its provider."""

    def spec(self, name: str) -> AgentSpec:
        """Return it as an agent of this name."""
        target = self.agent.partition(":")[2]
        return AgentSpec(kind=AgentKind.CLI, target=target, variables=self.variables, name=name)

    def entry(self, name: str) -> str:
        """Return its entry in agents.yaml, as YAML."""
        content = {name: {"agent": self.agent, "variables": self.variables}}
        return yaml.safe_dump(content, sort_keys=False, width=1000)


@cache
def presets() -> Mapping[str, Preset]:
    """Return the presets by their names."""
    text = files("passgate").joinpath("tasks", "agents", "presets.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Preset]).validate_python(yaml.safe_load(text))


def find_preset(agent: str) -> Preset | None:
    """Return the preset that an agent's command is from; `None` for any other command."""
    return next((preset for preset in presets().values() if preset.spec("").target == agent), None)
