"""Which agent a word on the command line names."""

import sys
from pathlib import Path

import pytest

from passgate.tasks.agents import make_agent, parse_agent
from passgate.tasks.agents.cli import CliAgent
from passgate.tasks.agents.oracle import NopAgent, OracleAgent
from passgate.tasks.agents.python import PythonAgent
from passgate.tasks.errors import UsageError
from passgate.tasks.model.run import AgentKind, AgentSpec


@pytest.mark.parametrize(
    ("text", "kind", "target", "is_reference"),
    [
        ("oracle", AgentKind.ORACLE, "", True),
        ("oracle:forgets-none", AgentKind.ORACLE, "forgets-none", True),
        ("nop", AgentKind.NOP, "", True),
        ("cli:my-agent --task {prompt}", AgentKind.CLI, "my-agent --task {prompt}", False),
        ("cli: a:b ", AgentKind.CLI, "a:b", False),
        ("python:my.module:function", AgentKind.PYTHON, "my.module:function", False),
    ],
)
def test_every_form(text: str, kind: AgentKind, target: str, is_reference: bool) -> None:
    spec = parse_agent(text)
    assert spec == AgentSpec(kind=kind, target=target)
    assert spec.is_reference is is_reference
    assert parse_agent(str(spec)) == spec


@pytest.mark.parametrize("text", ["", "orakel", "CLI:x", "shell:x", " oracle", "python", "cli", "cli:", "cli:  "])
def test_what_names_no_agent_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(UsageError, match="known: oracle, oracle:COUNTEREXAMPLE, nop, 'cli:COMMAND' or python:"):
        parse_agent(text)


def test_nop_takes_no_target() -> None:
    with pytest.raises(UsageError, match="takes nothing"):
        parse_agent("nop:fast")


@pytest.mark.parametrize(
    ("text", "kind"),
    [("oracle", OracleAgent), ("nop", NopAgent), ("cli:sh", CliAgent), ("python:os.path:basename", PythonAgent)],
)
def test_every_agent_can_be_made(text: str, kind: type, tmp_path: Path) -> None:
    before = list(sys.path)
    try:
        assert isinstance(make_agent(parse_agent(text), tmp_path), kind)
    finally:
        sys.path[:] = before
