"""Where a task is run, in the words of eval files: workspace, hooks, extensions and targets."""

from collections.abc import Mapping, Sequence
from typing import Any

from passgate.tasks.formats.evals.map.workspaces import AGENT_RULES
from passgate.tasks.formats.evals.read.documents import FILE_SCHEME
from passgate.tasks.formats.rules import HOOKS

Said = Mapping[str, Any]  # a task or a part of it as task files have it, its paths as the eval file writes them

_SHELL = ["sh", "-c"]


def written_workspace(workspace: Said | None) -> dict[str, Any]:
    """The keys of a test that say its workspace and what runs around its trials."""
    if workspace is None:
        return {}
    hooks = _written_hooks(workspace)
    needs = only(workspace, "required_commands", "required_python_modules")
    said = {**only(workspace, "template", "repos"), **given({"hooks": hooks, "env": needs})}
    variables = workspace.get("environment")
    return {
        # An empty workspace is still a workspace.
        **({"workspace": said or {"repos": []}} if said or not variables else {}),
        # Only the `environment` of the newest dialect has variables.
        **({"environment": {"type": "host", "env": variables}} if variables else {}),
        **given({"extensions": [_written_extension(each) for each in workspace.get("extensions", ())] or None}),
    }


def written_target(task: Said) -> dict[str, Any]:
    """The target of a task, with the hooks of all its targets."""
    targets = (task.get("environment", {}).get("workspace") or {}).get("target_hooks", ())
    if not targets:
        return {"target": task.get("target")}
    return {"targets": [{"name": each["target"], **given({"hooks": _written_hooks(each)})} for each in targets]}


def _written_hooks(said: Said) -> dict[str, Any]:
    hooks = {}
    for name, hook in only(said, *HOOKS).items():
        command, rest = written_command(hook["command"]), without(hook, "command")
        hooks[name] = {"command": command, **rest} if rest or isinstance(command, list) else command
    return hooks


def _written_extension(extension: Said) -> str | dict[str, Any]:
    if "module" in extension:
        return f"{FILE_SCHEME}{extension['module']}:{extension['hook']}"
    return {"id": AGENT_RULES, "hook": extension["hook"], **extension.get("agent_rules", {})}


def written_command(words: Sequence[str]) -> str | list[str]:
    """A command as the text that a shell runs, where it is one."""
    is_text = len(words) == 3 and list(words[:2]) == _SHELL and words[2].strip()
    return words[2] if is_text else list(words)


def without(said: Said, *keys: str) -> dict[str, Any]:
    """A mapping but for some keys."""
    return {key: value for key, value in said.items() if key not in keys}


def only(said: Said, *keys: str) -> dict[str, Any]:
    """Some keys of a mapping."""
    return {key: said[key] for key in keys if key in said}


def given(said: Said) -> dict[str, Any]:
    """A mapping without what says nothing."""
    return {key: value for key, value in said.items() if value is not None and value != {}}
