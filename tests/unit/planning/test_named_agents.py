"""What `--agent` says, and which agent that is."""

from pathlib import Path

import pytest

from passgate.tasks.errors import InputError, UsageError
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.planning.named_agents import find_agent, named_agents, targets_files

AGENTS = "agents: {claude: {agent: 'cli:claude -p {prompt}', model: claude-sonnet-5}, coder: {agent: 'cli:codex'}}\n"
TARGETS = """\
targets:
  - {name: local, provider: cli, command: "my-agent {PROMPT}"}
  - {name: default, use_target: local}
  - {name: editor, provider: vscode}
  - {name: claude, provider: cli, command: theirs}
  - {name: "cli:odd", provider: cli, command: "odd {PROMPT}"}
"""


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repository"
    for place in (folder / ".git", folder / "suites"):
        place.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def write(file: str, text: str) -> None:
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def find(text: str, gates: str = "gates.yaml", suites: str = "suites") -> AgentSpec:
    return find_agent(text, Path(gates), Path(suites))


def refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        find(text)
    return str(caught.value)


@pytest.fixture
def named() -> None:
    """Agents in agents.yaml, and targets of AgentV."""
    write("agents.yaml", AGENTS)
    write(".agentv/targets.yaml", TARGETS)


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(
    ("text", "name", "target"),
    [
        pytest.param("claude", "claude", "claude -p {prompt}", id="agents.yaml first"),
        pytest.param("local", "local", "my-agent {PROMPT}", id="target"),
        pytest.param("default", "local", "my-agent {PROMPT}", id="alias"),
        pytest.param("cli:odd", "cli:odd", "odd", id="form before a target"),
    ],
)
def test_a_name_is_one_of_agents_yaml_before_one_of_a_target(text: str, name: str, target: str) -> None:
    agent = find(text)
    assert (str(agent), agent.kind, agent.target) == (name, AgentKind.CLI, target)
    assert agent.model == ("claude-sonnet-5" if text == "claude" else None)
    assert "cli:odd" not in named_agents(Path("gates.yaml"), Path("suites")).target_names


def test_agents_yaml_lies_beside_the_gates_file() -> None:
    write("policies/agents.yaml", AGENTS)
    assert find("coder", gates="policies/gates.yaml").target == "codex"
    assert "unknown agent 'coder'" in refused("coder")


@pytest.mark.usefixtures("named")
def test_a_target_that_cannot_be_an_agent_is_refused_with_its_place_and_leaves_the_others() -> None:
    with pytest.raises(InputError) as caught:
        find("editor")
    assert str(caught.value).startswith(".agentv/targets.yaml:4:30: targets[2].provider: the provider 'vscode'")
    assert find("local").name == "local"


@pytest.mark.parametrize("text", ["oracle", "oracle:wrong", "nop", "cli:sh", "python:m:f"])
def test_a_form_is_an_agent_itself_and_needs_no_file(text: str) -> None:
    write("agents.yaml", "broken: [")
    write(".agentv/targets.yaml", "broken: [")
    assert str(find(text)) == text


@pytest.mark.usefixtures("named")
def test_an_unknown_name_is_refused_with_the_names_nearest_first_and_the_forms() -> None:
    message = refused("codx")
    assert message.startswith("unknown agent 'codx'; did you mean 'codex'? ")
    assert "the agents coder, " in message
    assert all(name in message for name in ("claude", "local", "default", "editor", "'cli:COMMAND'"))


def test_without_names_there_are_the_forms() -> None:
    message = refused("orakel")
    assert message.startswith(
        "unknown agent 'orakel'; did you mean 'oracle'? Known: oracle, oracle:COUNTEREXAMPLE, nop"
    )
    assert "agents.yaml" in message


def test_the_problems_of_all_files_come_together() -> None:
    write("agents.yaml", "agents: {a: {}, b: {agent: 'shell:x'}}\n")
    write(".agentv/targets.yaml", "targets: [{}]\n")
    with pytest.raises(InputError) as caught:
        find("claude")
    files = [problem.file for problem in caught.value.problems]
    assert files == [".agentv/targets.yaml", "agents.yaml"]


def targets_in(*folders: str) -> None:
    for folder in folders:
        write(f"{folder}/.agentv/targets.yaml", "targets: []\n")


def test_targets_are_searched_from_the_suites_up_to_the_repository_and_in_the_working_folder(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = ("services/one/suites", "services/one", "services", ".", "elsewhere")
    targets_in(*folders, "..")
    monkeypatch.chdir(repository / "elsewhere")
    found = targets_files(Path("../services/one/suites"), Path.cwd())
    assert [file.parent.parent.resolve() for file in found] == [(repository / folder).resolve() for folder in folders]


def test_outside_of_a_repository_the_search_ends_beside_the_suites(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".git").rmdir()
    targets_in("a/b/suites", "a/b", "a", ".")
    (repository / "elsewhere").mkdir()
    monkeypatch.chdir(repository / "elsewhere")
    found = targets_files(repository / "a/b/suites", Path.cwd())
    assert [file.parent.parent for file in found] == [repository / "a/b/suites", repository / "a/b"]
