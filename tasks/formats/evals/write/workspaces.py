"""A workspace in the words of eval files."""

from collections.abc import Mapping
from typing import Any

from passgate.tasks.formats.evals.write.graders import written_command
from passgate.tasks.formats.scoring_rules import HOOKS

Said = Mapping[str, Any]

_REQUIREMENTS = ("required_commands", "required_python_modules")


def written_workspace(workspace: Said | None) -> dict[str, Any]:
    """`workspace`, and `environment` for the variables that only the newest dialect has."""
    if workspace is None:
        return {}
    hooks = {name: _hook(workspace[name]) for name in HOOKS if name in workspace}
    needs = {name: workspace[name] for name in _REQUIREMENTS if name in workspace}
    said = {
        **{key: workspace[key] for key in ("template", "repos") if key in workspace},
        **({"hooks": hooks} if hooks else {}),
        **({"env": needs} if needs else {}),
    }
    variables = workspace.get("environment")
    return {
        # A workspace of which nothing is said is one all the same.
        **({"workspace": said or {"repos": []}} if said or not variables else {}),
        **({"environment": {"type": "host", "env": variables}} if variables else {}),
    }


def _hook(hook: Said) -> Any:
    command = written_command(hook["command"])
    rest = {key: value for key, value in hook.items() if key != "command"}
    return {"command": command, **rest} if rest or isinstance(command, list) else command
