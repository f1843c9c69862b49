"""The folder that the agent works in, as eval files say it: `workspace`, or `environment` of the newest dialect."""

from collections.abc import Sequence
from typing import Any

from passgate.tasks.formats.evals.map.hooks import HOOK_KEYS, read_hook, read_hooks
from passgate.tasks.formats.evals.map.repositories import read_repositories
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import (
    Key,
    Node,
    Parts,
    as_mapping,
    as_one_of,
    as_text,
    as_texts,
    take_apart,
)
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.task import Workspace

WORKSPACE_KEYS = {
    "template": Key((Kind.TEXT,), says="A folder that every trial begins with a copy of."),
    "repos": Key((Kind.LIST,), items=(Kind.MAPPING,), says="Git repositories in it."),
    "hooks": Key((Kind.MAPPING,), says="Commands: before_all, before_each, after_each, after_all."),
    "isolation": Key((Kind.TEXT,), says="per_case or per_test: every trial has a copy of its own in any case."),
    "mode": Key((Kind.TEXT,)),
    "path": Key((Kind.TEXT,)),
    "docker": Key(),
    "env": Key((Kind.MAPPING,), says="required_commands and required_python_modules."),
    "name": Key((Kind.TEXT,)),
    "description": Key((Kind.TEXT,)),
}
REQUIREMENT_KEYS = {
    "required_commands": Key((Kind.LIST,), items=(Kind.TEXT,)),
    "required_python_modules": Key((Kind.LIST,), items=(Kind.TEXT,)),
}
_OF_DOCKER = ("context", "dockerfile", "resources", "mounts", "secrets")
ENVIRONMENT_KEYS = {
    "type": Key((Kind.TEXT,), says="host"),
    "workdir": Key((Kind.TEXT,), says="A folder that every trial begins with a copy of."),
    "setup": Key((Kind.MAPPING, Kind.TEXT, Kind.LIST), says="A command that comes before the first trial."),
    "env": Key((Kind.MAPPING,), says="Variables for the agent."),
    "image": Key(),
    "docker": Key(),
    "name": Key((Kind.TEXT,)),
    **{name: Key(says="Of Docker, which passgate does not run.") for name in _OF_DOCKER},
}
_ISOLATIONS = ("shared", "per_test", "per_case")
_MODES = ("pooled", "temp", "static")
_NO_DOCKER = "passgate runs nothing in Docker"


def read_workspace(said: Sequence[Node], sources: Sources) -> Workspace | None:
    """The workspace that mappings say together, of which the first go before the others; `None` without any."""
    fields: dict[str, Any] = {}
    for node in reversed(said):
        read = _environment if "workdir" in node.value or "type" in node.value else _workspace
        fields |= read(node, sources)
    return Workspace(**fields) if fields else None


def shares_state(said: Sequence[Node]) -> bool:
    """Whether the tests of a file are to find what others left in their workspace."""
    return any(node.value.get("isolation") == "shared" for node in said)


def _workspace(node: Node, sources: Sources) -> dict[str, Any]:
    parts = take_apart(node, WORKSPACE_KEYS, sources.complaints)
    as_one_of(parts.get("isolation"), _ISOLATIONS, sources.complaints)
    _refuse_what_is_not_had(parts, sources)
    repos = parts.get("repos")
    return {
        **_template(parts.get("template"), sources),
        **({"repos": read_repositories(repos, sources)} if repos is not None else {}),
        **read_hooks(parts.get("hooks"), sources),
        **_requirements(as_mapping(parts.get("env")), sources),
    }


def _template(node: Node | None, sources: Sources) -> dict[str, str]:
    name = as_text(node)
    return {} if node is None or name is None else {"template": sources.folder(node, name)}


def _refuse_what_is_not_had(parts: Parts, sources: Sources) -> None:
    mode = as_one_of(parts.get("mode"), _MODES, sources.complaints)
    itself = parts.get("path") or (parts.get("mode") if mode == "static" else None)
    if itself is not None:
        sources.cannot_run(itself, "every trial has a copy: no folder can be worked in itself", at_key=True)
    docker = parts.get("docker")
    if docker is not None:
        sources.cannot_run(docker, _NO_DOCKER, at_key=True)


def _requirements(node: Node | None, sources: Sources) -> dict[str, Any]:
    if node is None:
        return {}
    parts = take_apart(node, REQUIREMENT_KEYS, sources.complaints)
    return {key: as_texts(part) for key, part in parts.values.items()}


def _environment(node: Node, sources: Sources) -> dict[str, Any]:
    parts = take_apart(node, ENVIRONMENT_KEYS, sources.complaints)
    kind = as_one_of(parts.get("type"), ("host", "docker"), sources.complaints)
    if kind == "docker" or parts.get("docker") is not None or parts.get("image") is not None:
        sources.cannot_run(node, _NO_DOCKER, at_key=True)
    else:
        _refuse_what_docker_has(parts, sources)
    variables = as_mapping(parts.get("env"))
    return {
        **_template(parts.get("workdir"), sources),
        **_setup(parts.get("setup"), sources),
        **({"environment": _variables(variables, sources)} if variables else {}),
    }


def _refuse_what_docker_has(parts: Parts, sources: Sources) -> None:
    for name in _OF_DOCKER:
        asked = parts.get(name)
        if asked is not None:
            message = "is for `type: docker`, which passgate does not run; leave it out, and limit trials by budgets"
            sources.refuse(asked, message, at_key=True)


def _setup(node: Node | None, sources: Sources) -> dict[str, Any]:
    if node is None:
        return {}
    said = node if isinstance(node.value, dict) else node.with_value({"command": node.value})
    hook = read_hook(take_apart(said, HOOK_KEYS, sources.complaints), sources)
    return {} if hook is None else {"before_all": hook}


def _variables(node: Node, sources: Sources) -> dict[str, str]:
    """Environment variables: texts, and numbers as texts."""
    variables = {}
    for key, value in node.value.items():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            variables[str(key)] = str(value)
        else:
            sources.refuse(node.child(key), "expected a text or a number")
    return variables
