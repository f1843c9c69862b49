"""The systems under test, and the judge that is asked about them."""

from pathlib import Path

from passgate.tasks.agents.cli import CliAgent
from passgate.tasks.agents.interface import Agent
from passgate.tasks.agents.oracle import NopAgent, OracleAgent
from passgate.tasks.agents.python import PythonAgent
from passgate.tasks.errors import UsageError
from passgate.tasks.model.run import AgentKind, AgentSpec

FORMS = "oracle, oracle:COUNTEREXAMPLE, nop, 'cli:COMMAND' or python:MODULE:FUNCTION"


def parse_agent(text: str) -> AgentSpec:
    """The agent that `--agent` names. Raises `UsageError` with the forms there are."""
    kind, _, target = text.partition(":")
    if kind not in {str(known) for known in AgentKind}:
        raise UsageError(f"unknown agent {text!r}; known: {FORMS}")
    spec = AgentSpec(kind=AgentKind(kind), target=target.strip())
    if spec.kind in {AgentKind.CLI, AgentKind.PYTHON} and not spec.target:
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
            return CliAgent.from_command(spec.target)
        case AgentKind.PYTHON:
            return PythonAgent.from_target(spec.target)
