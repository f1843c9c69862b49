"""AgentV's targets.yaml: found by name, through aliases, none spoiling the others."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.formats.targets_file import TargetsFile, agent_of_target, read_targets
from passgate.tasks.model.agent import AgentKind, AgentSpec

CLI = {"provider": "cli", "command": "my-agent {PROMPT}"}


def read(tmp_path: Path, text: str) -> TargetsFile | list[str]:
    file = tmp_path / ".agentv" / "targets.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    answer = read_targets(file, "targets.yaml")
    if isinstance(answer, TargetsFile):
        return answer
    return [str(problem).removeprefix("targets.yaml:") for problem in answer]


def targets(tmp_path: Path, **entries: dict[str, Any]) -> TargetsFile:
    answer = read(tmp_path, yaml.safe_dump({"targets": [{"name": name, **entry} for name, entry in entries.items()]}))
    assert isinstance(answer, TargetsFile)
    return answer


def found(files: TargetsFile | list[TargetsFile], name: str, **environment: str) -> AgentSpec:
    answer = agent_of_target(files if isinstance(files, list) else [files], name, environment)
    assert isinstance(answer, AgentSpec), answer
    return answer


def problem(files: TargetsFile, name: str, **environment: str) -> str:
    answer = agent_of_target([files], name, environment)
    assert isinstance(answer, list)
    (only,) = answer
    return str(only).removeprefix("targets.yaml:")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: expected a mapping with a list `targets`"),
        ("[]", "1:1: expected a mapping with a list `targets`"),
        ("targets: {a: {provider: cli}}", "1:1: expected a mapping with a list `targets`"),
        ("targets: [a]", "1:11: targets[0]: expected a mapping with a `name`"),
        ("targets: [{provider: cli}]", "1:11: targets[0]: expected a mapping with a `name`"),
        ("targets: [{name: 1}]", "1:11: targets[0]: expected a mapping with a `name`"),
        ("targets: [{name: a}, {name: a}]", "1:29: targets[1].name: the name 'a' stands here twice"),
        ("targets: [", "2:1: not valid YAML: "),
    ],
)
def test_a_file_without_targets_is_a_problem(tmp_path: Path, text: str, expected: str) -> None:
    answer = read(tmp_path, text)
    assert isinstance(answer, list)
    assert answer[0].startswith(expected)


def test_keys_beside_the_targets_are_left_to_agentv(tmp_path: Path) -> None:
    answer = read(tmp_path, "$schema: agentv-targets-v2.2\ntargets: [{name: a, provider: vscode}]\n")
    assert isinstance(answer, TargetsFile)


def test_a_target_is_an_agent_of_its_name(tmp_path: Path) -> None:
    agent = found(targets(tmp_path, mine=CLI), "mine")
    assert (agent.name, agent.kind, agent.target) == ("mine", AgentKind.CLI, "my-agent {PROMPT}")


def test_a_target_that_cannot_be_used_leaves_the_others_alone(tmp_path: Path) -> None:
    files = targets(tmp_path, editor={"provider": "vscode"}, mine=CLI, broken={"provider": "cli"})
    assert found(files, "mine").name == "mine"
    assert "the provider 'vscode' cannot be an agent" in problem(files, "editor")
    assert problem(files, "broken") == "7:3: targets[2]: the key 'command' is missing"


def test_an_alias_is_the_target_that_it_leads_to(tmp_path: Path) -> None:
    files = targets(tmp_path, default={"use_target": "${{ AGENT_TARGET }}"}, agent={"use_target": "mine"}, mine=CLI)
    assert found(files, "default", AGENT_TARGET="agent").name == "mine"


@pytest.mark.parametrize(
    ("alias", "expected"),
    [
        ("mien", "3:15: targets[0].use_target: no target 'mien'; did you mean 'mine'?"),
        ("default", "3:15: targets[0].use_target: the targets refer to each other: default, default"),
        ("${{ NOT_SET }}", "3:15: targets[0].use_target: not set in the environment: NOT_SET"),
        (5, "3:15: targets[0].use_target: expected the name of a target"),
    ],
)
def test_an_alias_that_leads_nowhere_is_a_problem(tmp_path: Path, alias: Any, expected: str) -> None:
    files = targets(tmp_path, default={"use_target": alias}, mine=CLI)
    assert problem(files, "default") == expected


def test_aliases_in_a_circle_are_a_problem(tmp_path: Path) -> None:
    files = targets(tmp_path, a={"use_target": "b"}, b={"use_target": "c"}, c={"use_target": "a"})
    assert "refer to each other: a, b, c, a" in problem(files, "a")


def test_of_two_files_the_first_that_has_a_name_counts(tmp_path: Path) -> None:
    (tmp_path / "near").mkdir()
    (tmp_path / "far").mkdir()
    near = targets(tmp_path / "near", mine=CLI, default={"use_target": "theirs"})
    far = targets(
        tmp_path / "far", mine=CLI | {"command": "other {PROMPT}"}, theirs=CLI | {"command": "theirs {PROMPT}"}
    )
    assert found([near, far], "mine").target == "my-agent {PROMPT}"
    assert found([near, far], "default").target == "theirs {PROMPT}"
