"""The systems under test, and the judge that is asked about them."""

from pathlib import Path

from passgate.tasks.agents.cli.agent import CliAgent
from passgate.tasks.agents.http.agent import HttpAgent
from passgate.tasks.agents.interface import Agent
from passgate.tasks.agents.openai.agent import OpenAiAgent
from passgate.tasks.agents.oracle import NopAgent, OracleAgent
from passgate.tasks.agents.python import PythonAgent
from passgate.tasks.agents.replay import ReplayAgent
from passgate.tasks.errors import UsageError
from passgate.tasks.model.agent import AgentKind, AgentSpec

FORMS = (
    "oracle, oracle:COUNTEREXAMPLE, nop, 'cli:COMMAND', python:MODULE:FUNCTION, http:URL, openai:MODEL, replay or "
    "replay:FOLDER"
)
_ADDRESSES = ("http://", "https://")
_NEED_A_TARGET = frozenset({AgentKind.CLI, AgentKind.PYTHON, AgentKind.HTTP, AgentKind.OPENAI})


def parse_agent(text: str) -> AgentSpec:
    """The agent that `--agent` names; an address by itself is an `http` agent. Raises `UsageError` with the forms
    there are.
    """
    if text.startswith(_ADDRESSES):
        return AgentSpec(kind=AgentKind.HTTP, target=text.strip())
    kind, _, target = text.partition(":")
    if kind not in {str(known) for known in AgentKind}:
        raise UsageError(f"unknown agent {text!r}; known: {FORMS}")
    spec = AgentSpec(kind=AgentKind(kind), target=target.strip())
    if spec.kind in _NEED_A_TARGET and not spec.target:
        raise UsageError(f"the agent {text!r} says nothing after the colon; known: {FORMS}")
    if spec.kind is AgentKind.NOP and spec.target:
        raise UsageError("the agent nop takes nothing after a colon")
    return spec


def make_agent(spec: AgentSpec, suites_folder: Path) -> Agent:
    """The agent itself, checked as far as is possible without running it. Raises `UsageError`."""
    match spec.kind:
        case AgentKind.ORACLE:
            return OracleAgent(suites_folder, spec.target or None)
        case AgentKind.NOP:
            return NopAgent()
        case AgentKind.CLI:
            return CliAgent.from_command(
                spec.target, files_format=spec.files_format, cwd=spec.cwd, suites_folder=suites_folder
            )
        case AgentKind.PYTHON:
            return PythonAgent.from_target(spec.target)
        case AgentKind.HTTP:
            return HttpAgent.from_spec(spec)
        case AgentKind.OPENAI:
            return OpenAiAgent.from_spec(spec, suites_folder)
        case AgentKind.REPLAY:
            return ReplayAgent.from_target(spec.target, suites_folder)
