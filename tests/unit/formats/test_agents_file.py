"""agents.yaml, right and wrong."""

from pathlib import Path

import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.formats.agents_file import read_agents
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint, HttpOptions, looks_like_a_form
from tests.unit.formats.reading import beginnings, read_text

KINDS = [str(kind) for kind in AgentKind]
NOTHING, VARIABLES = "means nothing to an agent of kind", "agents.a.variables"


def parse(text: str) -> AgentSpec:
    """As `--agent` is parsed, as far as this file needs it."""
    kind, _, target = text.partition(":")
    if kind not in KINDS:
        raise UsageError(f"unknown agent {text!r}")
    return AgentSpec(kind=AgentKind(kind), target=target)


def read(tmp_path: Path, text: str) -> dict[str, AgentSpec] | list[str]:
    return read_text(tmp_path / "agents.yaml", text, lambda file, name: read_agents(file, name, parse))


def test_an_agent_is_what_its_text_says_with_its_settings_and_its_name(tmp_path: Path) -> None:
    agents = read(
        tmp_path,
        """\
version: 1
agents:
  claude:
    agent: cli:my-agent {prompt}
    model: claude-sonnet-5
    upstreams:
      openai: {base_url: "http://127.0.0.1:8080/v1"}
      anthropic: {base_url: "https://proxy.example.com", api_key_variable: PROXY_KEY}
    variables: {URL: "{anthropic_base_url}/v1", MODEL: "{model}", KEY: "{api_key}", BRACES: '{"a": 1}'}
    timeout_seconds: 60
    files_format: --file {path}
  service:
    agent: http:https://agent.example.com/ask
    http: {request: {question: "{{ prompt }}"}, output: answer.text}
  plain: {agent: "openai:gpt-5", completion: {system: Be brief., parameters: {temperature: 0.2}}}
""",
    )
    assert isinstance(agents, dict)
    assert list(agents) == ["claude", "service", "plain"]
    claude = agents["claude"]
    assert (str(claude), claude.kind, claude.target) == ("claude", AgentKind.CLI, "my-agent {prompt}")
    assert claude.upstreams == {
        "openai": Endpoint(base_url="http://127.0.0.1:8080/v1"),
        "anthropic": Endpoint(base_url="https://proxy.example.com", api_key_variable="PROXY_KEY"),
    }
    assert (claude.model, claude.timeout_seconds, claude.files_format) == ("claude-sonnet-5", 60, "--file {path}")
    assert agents["service"].http == HttpOptions(request={"question": "{{ prompt }}"}, output="answer.text")
    assert agents["plain"].completion.parameters == {"temperature": 0.2}


def test_the_least_that_a_file_says(tmp_path: Path) -> None:
    agents = read(tmp_path, "agents: {mine: {agent: 'cli:x'}}")
    assert agents == {"mine": AgentSpec(kind=AgentKind.CLI, target="x", name="mine")}
    assert read(tmp_path, "agents: {}") == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: expected a mapping, not null"),
        ("version: 1", "1:1: the key 'agents' is missing"),
        ("agents: {a: {}}", "1:13: agents.a: the key 'agent' is missing"),
        ("agents: {a: 'cli:x'}", '1:13: agents.a: expected a mapping, not "cli:x"'),
        ("agents: {a: {agent: shell:x}}", "1:21: agents.a.agent: unknown agent 'shell:x'"),
        ("agents: {a: {agent: oracle:wrong}}", "1:21: agents.a.agent: oracle has no settings and needs no name"),
        ("agents: {'cli:a': {agent: 'cli:x'}}", "1:10: agents.cli:a: not a name: `--agent` takes texts with a colon, "),
        ("agents: {oracle: {agent: 'cli:x'}}", "1:10: agents.oracle: not a name: `--agent` takes texts with a colon"),
        ("agents: {' a': {agent: 'cli:x'}}", "1:10: agents. a: a name is a text that can be seen, without spaces"),
        ('agents: {"a\\e[2J": {agent: "cli:x"}}', "1:10: agents.a\x1b[2J: a name is a text that can be seen"),
        (f"agents: {{{'a' * 101}: {{agent: 'cli:x'}}}}", f"1:10: agents.{'a' * 101}: a name has at most 100 chara"),
        ("agents: {a: {agent: 'openai:x', variables: {}}}", f"1:44: agents.a.variables: {NOTHING} openai"),
        ("agents: {a: {agent: 'replay:x', model: m}}", f"1:40: agents.a.model: {NOTHING} replay; it is for: cli"),
        ("agents: {a: {agent: 'replay:x', timeout_seconds: 5}}", f"1:50: agents.a.timeout_seconds: {NOTHING} replay"),
    ],
)
def test_a_problem_has_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert beginnings(read(tmp_path, text), [expected]) == [expected]


NO_ADDRESS = "base_url: not an address as in https://host/v1"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("modl: m", "30: agents.a.modl: unknown key; did you mean 'model'?"),
        ("http: {output: a}", "36: agents.a.http: means nothing to an agent of kind cli; it is for: http"),
        ("variables: {K: '{api_kei}'}", f"45: {VARIABLES}.K: unknown placeholder {{api_kei}}; did you mean 'api_key'?"),
        ("variables: {K: '{secret}'}", f"45: {VARIABLES}.K: unknown placeholder {{secret}}; known: anthropic_base"),
        ("variables: {M: '{model}'}", f"45: {VARIABLES}.M: {{model}} needs a `model:` of this agent"),
        ("variables: {A-B: x}", f"47: {VARIABLES}.A-B: not a name of an environment variable"),
        ("upstreams: {openia: {}}", "42: agents.a.upstreams.openia: unknown key; did you mean 'openai'?"),
        ("timeout_seconds: 0", "47: agents.a.timeout_seconds: must be more than 0"),
        ("upstreams: {openai: {base_url: 127.0.0.1:80}}", f"61: agents.a.upstreams.openai.{NO_ADDRESS}"),
        # What may be a key is not repeated.
        ("upstreams: {openai: {base_url: 'https://a:sk-1@host'}}", f"61: agents.a.upstreams.openai.{NO_ADDRESS}"),
        ("upstreams: {openai: {base_url: 'ftp://host'}}", f"61: agents.a.upstreams.openai.{NO_ADDRESS}"),
        ("upstreams: {openai: {base_url: 'https://'}}", f"61: agents.a.upstreams.openai.{NO_ADDRESS}"),
        ("upstreams: {openai: {base_url: 'http://[::1'}}", f"61: agents.a.upstreams.openai.{NO_ADDRESS}"),
        (
            "upstreams: {openai: {api_key_variable: sk-1}}",
            "69: agents.a.upstreams.openai.api_key_variable: not the nam",
        ),
    ],
)
def test_a_problem_of_a_command_has_its_place(tmp_path: Path, said: str, expected: str) -> None:
    (found,) = read(tmp_path, f"agents: {{a: {{agent: 'cli:x', {said}}}}}")
    assert found.startswith(f"1:{expected}")
    assert "sk-1" not in found


def test_the_problems_of_all_agents_come_together(tmp_path: Path) -> None:
    answer = read(tmp_path, "agents:\n  nop: {agent: 'cli:x'}\n  b: {agent: y}\n  c: {agent: 'nop:', model: m}\n")
    assert isinstance(answer, list)
    assert [problem.split(":")[0] for problem in answer] == ["2", "3", "4"]


@pytest.mark.parametrize(
    ("text", "is_form"), [("oracle", True), ("nop", True), ("replay", True), ("cli:x", True), ("claude", False)]
)
def test_names_and_forms_cannot_be_mistaken_for_each_other(text: str, is_form: bool) -> None:
    assert looks_like_a_form(text) is is_form
