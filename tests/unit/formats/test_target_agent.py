"""Which agent a target of AgentV is, provider by provider."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.targets_file import AgentVTarget, agent_of
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint

VARIABLES = {
    "MODEL": "my-model",
    "URL": "https://models.example.com/v1/",
    "KEY": "sk-123456",
    "DIRECTORY": "../the tools",
}


def answer_of(tmp_path: Path, environment: dict[str, str] | None = None, **entry: Any) -> AgentSpec | list[str]:
    file = tmp_path / "targets.yaml"
    file.write_text(yaml.safe_dump({"targets": [{"name": "first"}, {"name": "mine", **entry}]}), encoding="utf-8")
    document = read_document(file, "targets.yaml")
    answer = agent_of(
        AgentVTarget(document, 1, tmp_path / ".agentv", VARIABLES if environment is None else environment)
    )
    return answer if isinstance(answer, AgentSpec) else [str(problem).partition("targets[1]")[2] for problem in answer]


def agent(tmp_path: Path, environment: dict[str, str] | None = None, **entry: Any) -> AgentSpec:
    answer = answer_of(tmp_path, environment, **entry)
    assert isinstance(answer, AgentSpec), answer
    assert answer.name == "mine"
    return answer


def problems(tmp_path: Path, environment: dict[str, str] | None = None, **entry: Any) -> list[str]:
    answer = answer_of(tmp_path, environment, **entry)
    assert isinstance(answer, list), answer
    return answer


def endpoint(spec: AgentSpec) -> tuple[str | None, str | None]:
    assert spec.kind is AgentKind.OPENAI
    assert spec.upstreams.anthropic == Endpoint()
    return spec.upstreams.openai.base_url, spec.upstreams.openai.api_key_variable


@pytest.mark.parametrize("key", ["command", "command_template"])
def test_a_command_is_a_command(tmp_path: Path, key: str) -> None:
    spec = agent(
        tmp_path,
        provider="CLI",
        **{key: "uv run x.py --prompt {PROMPT} {FILES} --out {OUTPUT_FILE}"},
        files_format="--file {path}",
        timeout_seconds=20,
        verbose=True,
        keep_temp_files=True,
        grader_target="judge",
        workers=3,
        healthcheck={"command": "x"},
        max_retries=2,
    )
    assert spec.kind is AgentKind.CLI
    assert spec.target == "uv run x.py --prompt {PROMPT} {FILES} --out {OUTPUT_FILE}"
    assert (spec.files_format, spec.timeout_seconds) == ("--file {path}", 20)


def test_a_command_without_placeholders_is_a_line_for_a_shell_too(tmp_path: Path) -> None:
    assert agent(tmp_path, provider="cli", command="date | cat").target == ": {EVAL_ID}; date | cat"


@pytest.mark.parametrize("folder", ["../the tools", "${{ DIRECTORY }}"])
def test_a_folder_is_relative_to_the_one_of_the_file_and_the_workspace_goes_before_it(
    tmp_path: Path, folder: str
) -> None:
    tools, workspace = tmp_path / "the tools", tmp_path / "workspace"
    tools.mkdir()
    workspace.mkdir()
    line = agent(tmp_path, provider="cli", command="echo {EVAL_ID}; pwd", cwd=folder).target

    def run() -> list[str]:
        return subprocess.run(["sh", "-c", line], cwd=workspace, capture_output=True, text=True).stdout.splitlines()

    assert run() == ["{EVAL_ID}", str(tools)]
    (workspace / ".a-file").touch()
    assert run() == ["{EVAL_ID}", str(workspace)]


def test_a_folder_that_is_not_there_ends_the_command(tmp_path: Path) -> None:
    line = agent(tmp_path, provider="cli", command="echo on", cwd="gone").target
    (tmp_path / "workspace").mkdir()
    result = subprocess.run(["sh", "-c", line], cwd=tmp_path / "workspace", capture_output=True, text=True)
    assert (result.returncode != 0, result.stdout) == (True, "")


def test_variables_are_filled_in(tmp_path: Path) -> None:
    assert agent(tmp_path, provider="cli", command="run {PROMPT} --model ${{MODEL}}").target == (
        "run {PROMPT} --model my-model"
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"provider": "cli"}, [": the key 'command' is missing"]),
        ({"provider": "cli", "command": ""}, [".command: must not be empty"]),
        ({"provider": "cli", "command": " "}, [": the key 'command' is missing"]),
        ({"provider": "cli", "comand": "x"}, [".comand: unknown key; did you mean 'command'?"]),
        ({"provider": "cli", "command": "x", "provider_batching": True}, [".provider_batching: every trial starts"]),
        ({"provider": "cli", "command": "x", "cwd": "${{ A }}/${{ B }}"}, [".cwd: not set in the environment: A, B"]),
        (
            {"provider": "cli", "command": "x", "timeout_seconds": "20"},
            ['.timeout_seconds: expected a number, not "20"'],
        ),
        ({}, [".provider: expected a text `provider`"]),
        ({"provider": ["cli"]}, [".provider: expected a text `provider`"]),
    ],
)
def test_a_command_that_cannot_be_used_is_a_problem(tmp_path: Path, entry: Any, expected: list[str]) -> None:
    for problem, beginning in zip(problems(tmp_path, **entry), expected, strict=True):
        assert problem.startswith(beginning)


def test_a_model_is_asked_by_our_own_loop(tmp_path: Path) -> None:
    spec = agent(
        tmp_path,
        provider="openai",
        model="${{ MODEL }}",
        base_url="${{ URL }}",
        api_key="${{ KEY }}",
        api_format="chat",
        temperature=0.5,
        max_output_tokens=512,
    )
    assert spec.target == "my-model"
    assert endpoint(spec) == ("https://models.example.com/v1/", "KEY")
    assert spec.completion.parameters == {"temperature": 0.5, "max_completion_tokens": 512}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"provider": "openai"}, (None, "OPENAI_API_KEY")),
        ({"provider": "openai", "endpoint": "http://127.0.0.1:1/v1"}, ("http://127.0.0.1:1/v1", "OPENAI_API_KEY")),
        ({"provider": "openrouter"}, ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY")),
        ({"provider": "openrouter", "api_key": "${{KEY}}"}, ("https://openrouter.ai/api/v1", "KEY")),
        (
            {"provider": "gemini"},
            ("https://generativelanguage.googleapis.com/v1beta/openai", "GOOGLE_GENERATIVE_AI_API_KEY"),
        ),
        (
            {"provider": "azure", "endpoint": "my-resource", "version": "${{ NOT_SET }}"},
            ("https://my-resource.openai.azure.com/openai/v1", "AZURE_OPENAI_API_KEY"),
        ),
        (
            {"provider": "azure", "endpoint": "https://my.example.com/"},
            ("https://my.example.com/openai/v1", "AZURE_OPENAI_API_KEY"),
        ),
        (
            {"provider": "azure", "endpoint": "https://my.example.com/openai/v1/"},
            ("https://my.example.com/openai/v1", "AZURE_OPENAI_API_KEY"),
        ),
    ],
)
def test_every_provider_has_its_address_and_its_key(tmp_path: Path, entry: Any, expected: tuple[str, str]) -> None:
    assert endpoint(agent(tmp_path, model="m", **entry)) == expected


def test_a_limit_of_tokens_is_called_as_the_provider_calls_it(tmp_path: Path) -> None:
    spec = agent(tmp_path, provider="openrouter", model="m", max_output_tokens=9)
    assert spec.completion.parameters == {"max_tokens": 9}


def test_azures_deployment_is_its_model(tmp_path: Path) -> None:
    assert agent(tmp_path, provider="azure", deployment="mine-4", endpoint="r").target == "mine-4"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"provider": "openai"}, [": the key 'model' is missing"]),
        ({"provider": "openai", "model": "${{ NOT_SET }}"}, [".model: not set in the environment: NOT_SET"]),
        ({"provider": "azure", "model": "m"}, [": the key 'endpoint' is missing"]),
        ({"provider": "openai", "model": "m", "base_url": "localhost"}, [".base_url: not an address as in https://"]),
        ({"provider": "openai", "model": "m", "api_format": "x"}, ['.api_format: "x" is not one of the allowed']),
        ({"provider": "openai", "model": "m", "top_p": 1}, [".top_p: unknown key"]),
        ({"provider": "openai", "api_key": "${{ KEY }}", "model": ""}, [".model: must not be empty"]),
    ],
)
def test_a_model_that_cannot_be_asked_is_a_problem(tmp_path: Path, entry: Any, expected: list[str]) -> None:
    found = problems(tmp_path, **entry)
    for problem, beginning in zip(found, expected, strict=True):
        assert problem.startswith(beginning)


def test_a_blank_variable_is_as_good_as_none(tmp_path: Path) -> None:
    assert "not set" in problems(tmp_path, {"MODEL": " "}, provider="openai", model="${{ MODEL }}")[0]


def test_a_key_in_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, provider="openai", model="m", api_key="sk-123456")
    assert problem == ".api_key: keys do not stand in files: write ${{ NAME }}, the variable that holds it"


def test_a_key_is_never_part_of_the_agent(tmp_path: Path) -> None:
    spec = agent(tmp_path, provider="openai", model="m", api_key="${{ KEY }}")
    assert VARIABLES["KEY"] not in spec.model_dump_json()


@pytest.mark.parametrize(
    ("provider", "remedy"),
    [
        ("anthropic", "or name provider `openai` with the base_url of an OpenAI-compatible endpoint"),
        ("mock", "name it in agents.yaml as `python:MODULE:FUNCTION`"),
        ("codex", "give the command that starts it as provider `cli`"),
        ("copilot-cli", "give the command that starts it as provider `cli`"),
        ("replay", "give the command that starts it as provider `cli`"),
    ],
)
def test_another_provider_is_named_with_its_remedy(tmp_path: Path, provider: str, remedy: str) -> None:
    (problem,) = problems(tmp_path, provider=provider, model="m", response="x")
    known = "(cli, openai, azure, openrouter, gemini can)"
    assert problem.startswith(f".provider: the provider {provider!r} cannot be an agent {known}: ")
    assert problem.endswith(remedy)
