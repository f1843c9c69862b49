import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.formats.agents_file import AgentVTarget, TargetsFile, find_target_agent, read_targets, target_agent
from passgate.tasks.formats.document import read_document
from passgate.tasks.model.agent import AgentKind, AgentSpec
from tests.unit.formats.reading import beginnings, read_text

VARIABLES = {
    "MODEL": "my-model",
    "URL": "https://models.example.com/v1/",
    "KEY": "sk-123456",
    "DIRECTORY": "../the tools",
    "BLANK": " ",
}
CLI = {"provider": "cli", "command": "my-agent {PROMPT}"}
MODEL = {"provider": "openai", "model": "m"}
MINE = "{name: mine, provider: cli, command: 'my-agent {PROMPT}'}"


def answer_of(tmp_path: Path, **entry: Any) -> AgentSpec | list[str]:
    file = tmp_path / "targets.yaml"
    file.write_text(yaml.safe_dump({"targets": [{"name": "first"}, {"name": "mine", **entry}]}), encoding="utf-8")
    document = read_document(file, "targets.yaml")
    answer = target_agent(AgentVTarget(document, 1, document.data["targets"][1], tmp_path / ".agentv", VARIABLES))
    return answer if isinstance(answer, AgentSpec) else [str(problem).partition("targets[1]")[2] for problem in answer]


def agent(tmp_path: Path, **entry: Any) -> AgentSpec:
    answer = answer_of(tmp_path, **entry)
    assert isinstance(answer, AgentSpec), answer
    assert answer.name == "mine"
    assert VARIABLES["KEY"] not in answer.model_dump_json()
    return answer


def endpoint(spec: AgentSpec) -> tuple[str | None, str | None]:
    assert spec.kind is AgentKind.OPENAI
    (used,) = spec.upstreams.items()
    assert used[0] == "openai"
    return used[1].base_url, used[1].api_key_variable


@pytest.mark.parametrize("key", ["command", "command_template"])
def test_a_command_is_a_command(tmp_path: Path, key: str) -> None:
    line = "uv run x.py --prompt {PROMPT} {FILES} --out {OUTPUT_FILE}"
    left_to_agentv = {
        "verbose": True,
        "keep_temp_files": True,
        "grader_target": "judge",
        "workers": 3,
        "max_retries": 2,
    }
    kept = {"files_format": "--file {path}", "timeout_seconds": 20, "healthcheck": {"command": "x"}}
    spec = agent(tmp_path, provider="CLI", **{key: line}, **left_to_agentv, **kept)
    assert (spec.kind, spec.target) == (AgentKind.CLI, line)
    assert (spec.files_format, spec.timeout_seconds) == ("--file {path}", 20)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("date | cat", ": {EVAL_ID}; date | cat"),
        ("run {PROMPT} --model ${{MODEL}}", "run {PROMPT} --model my-model"),
    ],
)
def test_a_command_is_a_line_for_a_shell_with_variables(tmp_path: Path, command: str, line: str) -> None:
    assert agent(tmp_path, provider="cli", command=command).target == line


@pytest.mark.parametrize("folder", ["../the tools", "${{ DIRECTORY }}"])
def test_a_folder_is_relative_to_that_of_the_file_and_the_workspace_goes_before_it(tmp_path: Path, folder: str) -> None:
    tools, workspace = tmp_path / "the tools", tmp_path / "workspace"
    workspace.mkdir()
    line = agent(tmp_path, provider="cli", command="echo {EVAL_ID}; pwd", cwd=folder).target

    def run() -> tuple[bool, list[str]]:
        result = subprocess.run(["sh", "-c", line], cwd=workspace, capture_output=True, text=True)
        return result.returncode == 0, result.stdout.splitlines()

    assert run() == (False, [])
    tools.mkdir()
    assert run() == (True, ["{EVAL_ID}", str(tools)])
    (workspace / ".a-file").touch()
    assert run() == (True, ["{EVAL_ID}", str(workspace)])


KEYS = ".api_key: keys do not stand in files: write ${{ NAME }}, the variable that holds it"
TO_CLI = "give the command that starts it as provider `cli`"
TO_OPENAI = "or name provider `openai` with the base_url of an OpenAI-compatible endpoint"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"provider": "cli"}, ": the key 'command' is missing"),
        (CLI | {"command": ""}, ".command: must not be empty"),
        (CLI | {"command": " "}, ": the key 'command' is missing"),
        (CLI | {"comand": "x"}, ".comand: unknown key; did you mean 'command'?"),
        (CLI | {"provider_batching": True}, ".provider_batching: every trial starts"),
        (CLI | {"cwd": "${{ A }}/${{ B }}"}, ".cwd: not set in the environment: A, B"),
        (CLI | {"timeout_seconds": "20"}, '.timeout_seconds: expected a number, not "20"'),
        ({}, ".provider: expected a text `provider`"),
        ({"provider": ["cli"]}, ".provider: expected a text `provider`"),
        ({"provider": "openai"}, ": the key 'model' is missing"),
        (MODEL | {"model": "${{ NOT_SET }}"}, ".model: not set in the environment: NOT_SET"),
        (MODEL | {"model": "${{ BLANK }}"}, ".model: not set in the environment: BLANK"),
        (MODEL | {"model": "", "api_key": "${{ KEY }}"}, ".model: must not be empty"),
        (MODEL | {"base_url": "localhost"}, ".base_url: not an address as in https://"),
        (MODEL | {"api_format": "x"}, '.api_format: "x" is not one of the allowed'),
        (MODEL | {"top_p": 1}, ".top_p: unknown key"),
        (MODEL | {"provider": "azure"}, ": the key 'endpoint' is missing"),
        (MODEL | {"api_key": "sk-123456"}, KEYS),  # what may be a key is not repeated
    ],
)
def test_a_target_that_cannot_be_used_is_a_problem(tmp_path: Path, entry: Any, expected: str) -> None:
    (problem,) = answer_of(tmp_path, **entry)
    assert problem.startswith(expected)
    assert VARIABLES["KEY"] not in problem


@pytest.mark.parametrize(
    ("provider", "remedy"),
    [
        ("anthropic", TO_OPENAI),
        ("mock", "name it in agents.yaml as `python:MODULE:FUNCTION`"),
        ("codex", TO_CLI),
        ("replay", TO_CLI),
    ],
)
def test_another_provider_is_named_with_its_remedy(tmp_path: Path, provider: str, remedy: str) -> None:
    (problem,) = answer_of(tmp_path, provider=provider, model="m", response="x")
    known = "(cli, openai, azure, openrouter, gemini can)"
    assert problem.startswith(f".provider: the provider {provider!r} cannot be an agent {known}: ")
    assert problem.endswith(remedy)


def test_a_model_is_asked_by_our_own_loop(tmp_path: Path) -> None:
    said = {"api_format": "chat", "temperature": 0.5, "max_output_tokens": 512}
    spec = agent(tmp_path, provider="openai", model="${{ MODEL }}", base_url="${{ URL }}", api_key="${{ KEY }}", **said)
    assert (spec.target, endpoint(spec)) == ("my-model", ("https://models.example.com/v1/", "KEY"))
    assert spec.completion.parameters == {"temperature": 0.5, "max_completion_tokens": 512}
    spec = agent(tmp_path, provider="openrouter", model="m", max_output_tokens=9)
    assert spec.completion.parameters == {"max_tokens": 9}
    assert agent(tmp_path, provider="azure", deployment="mine-4", endpoint="r").target == "mine-4"


GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"
AZURE = "https://my.example.com/openai/v1"


@pytest.mark.parametrize(
    ("provider", "said", "address", "key"),
    [
        ("openai", {}, None, "OPENAI_API_KEY"),
        ("openai", {"endpoint": "http://127.0.0.1:1/v1"}, "http://127.0.0.1:1/v1", "OPENAI_API_KEY"),
        ("openrouter", {}, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ("openrouter", {"api_key": "${{KEY}}"}, "https://openrouter.ai/api/v1", "KEY"),
        ("gemini", {}, GEMINI, "GOOGLE_GENERATIVE_AI_API_KEY"),
        ("azure", {"endpoint": "a"}, "https://a.openai.azure.com/openai/v1", "AZURE_OPENAI_API_KEY"),
        ("azure", {"endpoint": "https://my.example.com/", "version": "${{ B }}"}, AZURE, "AZURE_OPENAI_API_KEY"),
        ("azure", {"endpoint": "https://my.example.com/openai/v1/"}, AZURE, "AZURE_OPENAI_API_KEY"),
    ],
)
def test_every_provider_has_its_address_and_its_key(
    tmp_path: Path, provider: str, said: dict[str, str], address: str | None, key: str
) -> None:
    assert endpoint(agent(tmp_path, provider=provider, model="m", **said)) == (address, key)


def read(tmp_path: Path, text: str) -> TargetsFile | list[str]:
    return read_text(tmp_path / "targets.yaml", text, read_targets)


def targets(tmp_path: Path, **entries: dict[str, Any]) -> TargetsFile:
    answer = read(tmp_path, yaml.safe_dump({"targets": [{"name": name, **entry} for name, entry in entries.items()]}))
    assert isinstance(answer, TargetsFile)
    return answer


def found(files: TargetsFile | list[TargetsFile], name: str, **environment: str) -> AgentSpec:
    answer = find_target_agent(files if isinstance(files, list) else [files], name, environment)
    assert isinstance(answer, AgentSpec), answer
    return answer


def problem(files: TargetsFile, name: str, **environment: str) -> str:
    answer = find_target_agent([files], name, environment)
    assert isinstance(answer, list)
    (only,) = answer
    return str(only).removeprefix("targets.yaml:")


REFER = ".use_target: the targets refer to each other:"


NO_LIST, NO_NAME = "1:1: expected a mapping with a list `targets`", "1:11: targets[0]: expected a mapping with a `name`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", NO_LIST),
        ("[]", NO_LIST),
        ("targets: {a: {provider: cli}}", NO_LIST),
        ("targets: [a]", NO_NAME),
        ("targets: [{provider: cli}]", NO_NAME),
        ("targets: [{name: 1}]", NO_NAME),
        ("targets: [{name: a}, {name: a}]", "1:29: targets[1].name: duplicate name 'a'"),
        ("targets: [", "2:1: not valid YAML: "),
    ],
)
def test_a_file_without_targets_is_a_problem(tmp_path: Path, text: str, expected: str) -> None:
    assert beginnings(read(tmp_path, text), [expected]) == [expected]


def test_a_target_is_an_agent_of_its_name_whatever_is_wrong_with_others(tmp_path: Path) -> None:
    """Keys beside the targets are left to AgentV."""
    files = read(
        tmp_path, f"$schema: a\ntargets: [{{name: editor, provider: vscode}}, {MINE}, {{name: b, provider: cli}}]\n"
    )
    assert isinstance(files, TargetsFile)
    agent = found(files, "mine")
    assert (agent.name, agent.kind, agent.target) == ("mine", AgentKind.CLI, "my-agent {PROMPT}")
    assert "the provider 'vscode' cannot be an agent" in problem(files, "editor")
    assert problem(files, "b").endswith(": targets[2]: the key 'command' is missing")


def test_an_alias_is_the_target_that_it_leads_to(tmp_path: Path) -> None:
    files = targets(tmp_path, default={"use_target": "${{ AGENT_TARGET }}"}, agent={"use_target": "mine"}, mine=CLI)
    assert found(files, "default", AGENT_TARGET="agent").name == "mine"


@pytest.mark.parametrize(
    ("alias", "expected"),
    [
        ("mien", "3:15: targets[0].use_target: no target 'mien'; did you mean 'mine'?"),
        ("default", f"3:15: targets[0]{REFER} default, default"),
        ("b", f"7:15: targets[2]{REFER} default, b, c, default"),
        ("${{ NOT_SET }}", "3:15: targets[0].use_target: not set in the environment: NOT_SET"),
        (5, "3:15: targets[0].use_target: expected the name of a target"),
    ],
)
def test_an_alias_that_leads_nowhere_is_a_problem(tmp_path: Path, alias: Any, expected: str) -> None:
    aliases = {"default": {"use_target": alias}, "b": {"use_target": "c"}, "c": {"use_target": "default"}}
    assert problem(targets(tmp_path, **aliases, mine=CLI), "default") == expected


def test_of_two_files_the_first_that_has_a_name_counts(tmp_path: Path) -> None:
    near = targets(tmp_path, mine=CLI, default={"use_target": "theirs"})
    far = targets(tmp_path, mine=CLI | {"command": "other {PROMPT}"}, theirs=CLI | {"command": "theirs {PROMPT}"})
    assert found([near, far], "mine").target == "my-agent {PROMPT}"
    assert found([near, far], "default").target == "theirs {PROMPT}"
