"""The systems under test, and the judge that is asked about them."""

from pathlib import Path

from passgate.tasks.agents.interface import Agent
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
    """The agent itself, checked as far as is possible without running it; close it. Raises `UsageError`."""
    # Imported here, for the process of a Python agent imports this package and needs none of them.
    match spec.kind:
        case AgentKind.ORACLE:
            from passgate.tasks.agents.oracle import OracleAgent

            return OracleAgent(suites_folder, spec.target or None)
        case AgentKind.NOP:
            from passgate.tasks.agents.oracle import NopAgent

            return NopAgent()
        case AgentKind.CLI:
            from passgate.tasks.agents.cli.agent import CliAgent

            return CliAgent.from_command(
                spec.target, files_format=spec.files_format, cwd=spec.cwd, suites_folder=suites_folder
            )
        case AgentKind.PYTHON:
            from passgate.tasks.agents.python import PythonAgent

            return PythonAgent.from_target(spec.target)
        case AgentKind.HTTP:
            from passgate.tasks.agents.http.agent import HttpAgent

            return HttpAgent.from_spec(spec)
        case AgentKind.OPENAI:
            from passgate.tasks.agents.openai.agent import OpenAiAgent

            return OpenAiAgent.from_spec(spec, suites_folder)
        case AgentKind.REPLAY:
            from passgate.tasks.agents.replay import ReplayAgent

            return ReplayAgent.from_target(spec.target, suites_folder)


def check_agent(spec: AgentSpec, suites_folder: Path) -> None:
    """Find out what can be known to be wrong with an agent before it is run. Raises `UsageError`."""
    make_agent(spec, suites_folder).close()
