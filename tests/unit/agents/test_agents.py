"""Which agent a word on the command line names."""

from contextlib import closing
from pathlib import Path

import pytest

from passgate.tasks.agents import agent_class, make_agent, parse_agent
from passgate.tasks.agents.cli import CliAgent
from passgate.tasks.agents.http import HttpAgent
from passgate.tasks.agents.openai import OpenAiAgent
from passgate.tasks.agents.oracle import NopAgent, OracleAgent
from passgate.tasks.agents.python import PythonAgent
from passgate.tasks.agents.replay import ReplayAgent
from passgate.tasks.errors import UsageError
from passgate.tasks.model.agent import KINDS, AgentKind, AgentSettings, AgentSpec


@pytest.mark.parametrize(
    ("text", "kind", "target", "is_reference"),
    [
        ("oracle", AgentKind.ORACLE, "", True),
        ("oracle:forgets-none", AgentKind.ORACLE, "forgets-none", True),
        ("nop", AgentKind.NOP, "", True),
        ("cli:my-agent --task {prompt}", AgentKind.CLI, "my-agent --task {prompt}", False),
        ("cli: a:b ", AgentKind.CLI, "a:b", False),
        ("python:my.module:function", AgentKind.PYTHON, "my.module:function", False),
        ("http:https://host:8080/ask?a=b", AgentKind.HTTP, "https://host:8080/ask?a=b", False),
        ("http://127.0.0.1:8080/ask", AgentKind.HTTP, "http://127.0.0.1:8080/ask", False),
        ("https://host/ask", AgentKind.HTTP, "https://host/ask", False),
        ("openai:vendor/model:free", AgentKind.OPENAI, "vendor/model:free", False),
        ("replay", AgentKind.REPLAY, "", False),
        ("replay:runs/yesterday", AgentKind.REPLAY, "runs/yesterday", False),
    ],
)
def test_every_form(text: str, kind: AgentKind, target: str, is_reference: bool) -> None:
    spec = parse_agent(text)
    assert spec == AgentSpec(kind=kind, target=target)
    assert spec.is_reference is is_reference
    assert parse_agent(str(spec)) == spec


NO_AGENTS = ["", "orakel", "CLI:x", "shell:x", " oracle", "python", "cli", "cli:", "cli:  ", "http", "http:", "openai"]
FORMS = "known: oracle, oracle:COUNTEREXAMPLE, nop, 'cli:COMMAND', python:"


@pytest.mark.parametrize(("text", "what"), [*((text, FORMS) for text in NO_AGENTS), ("nop:fast", "takes nothing")])
def test_what_names_no_agent_is_refused_with_the_forms_there_are(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        parse_agent(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("oracle", OracleAgent),
        ("nop", NopAgent),
        ("cli:sh", CliAgent),
        ("python:os.path:basename", PythonAgent),
        ("http://host/", HttpAgent),
        ("openai:model-1", OpenAiAgent),
        ("replay", ReplayAgent),
        ("replay:/", ReplayAgent),
    ],
)
def test_every_agent_can_be_made(text: str, kind: type, tmp_path: Path) -> None:
    with closing(make_agent(parse_agent(text), tmp_path)) as agent:
        assert isinstance(agent, kind)


def test_every_kind_has_a_class_and_says_how_it_is_written() -> None:
    assert list(KINDS) == list(AgentKind)
    assert len({agent_class(kind) for kind in AgentKind}) == len(AgentKind)
    for kind, known in KINDS.items():
        assert all(form.strip("'").partition(":")[0] == kind for form in known.forms)
        assert known.settings <= AgentSettings.model_fields.keys()
