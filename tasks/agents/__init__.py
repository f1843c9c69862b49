"""The systems under test, and the judge that is asked about them."""

from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Final

from passgate.tasks.agents.interface import Agent
from passgate.tasks.errors import UsageError
from passgate.tasks.model.agent import KINDS, AgentKind, AgentSpec

_CLASSES: Final = {
    AgentKind.ORACLE: "oracle.OracleAgent",
    AgentKind.NOP: "oracle.NopAgent",
    AgentKind.CLI: "cli.CliAgent",
    AgentKind.PYTHON: "python.PythonAgent",
    AgentKind.HTTP: "http.HttpAgent",
    AgentKind.OPENAI: "openai.OpenAiAgent",
    AgentKind.REPLAY: "replay.ReplayAgent",
}  # By their modules, which are imported late: the process of a Python agent imports this package and needs none
FORMS: Final = " or ".join(", ".join(chain.from_iterable(kind.forms for kind in KINDS.values())).rsplit(", ", 1))
_ADDRESSES: Final = ("http://", "https://")


def agent_class(kind: AgentKind) -> type[Agent]:
    """Return the class of a kind of agents."""
    module, _, name = _CLASSES[kind].partition(".")
    found: type[Agent] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


def parse_agent(text: str) -> AgentSpec:
    """Return the agent that `--agent` names; an address by itself is an `http` agent.

    Raises `UsageError` with the known forms.
    """
    if text.startswith(_ADDRESSES):
        return AgentSpec(kind=AgentKind.HTTP, target=text.strip())
    name, _, after = text.partition(":")
    if name not in set(AgentKind):
        raise UsageError(f"unknown agent {text!r}; known: {FORMS}")
    kind, target = AgentKind(name), after.strip()
    if not target and not KINDS[kind].stands_alone:
        raise UsageError(f"the agent {text!r} lacks a value after the colon; known: {FORMS}")
    if target and not KINDS[kind].takes_target:
        raise UsageError(f"the agent {kind} takes nothing after a colon")
    return AgentSpec(kind=kind, target=target)


def make_agent(spec: AgentSpec, suites_folder: Path) -> Agent:
    """Return the agent, checked as far as possible without running it. Close it. Raises `UsageError`."""
    if spec.names_mcp and find_spec("mcp_types") is None:
        raise UsageError(f"the agent {spec} needs the tools over MCP: pip install 'passgate[mcp]'")
    return agent_class(spec.kind).from_spec(spec, suites_folder)


def check_agent(spec: AgentSpec, suites_folder: Path) -> None:
    """Find out what can be known to be wrong with an agent before it is run. Raises `UsageError`."""
    make_agent(spec, suites_folder).close()
