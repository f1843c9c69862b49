"""Run extensions of eval files: functions of modules around trials, and the search for the rules of an agent."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.task import Extension, Workspace
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox, refuse_failure

BUN: Final = "bun"
_PATHS: Final = "agent_rules_paths"
# The process starts in the module's folder: from the workspace bun would take settings that the agent may have left
# there. What the module prints goes to the error output; only the last line of the output is the result.
_MODULE: Final = """\
const {module, hook, context} = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log = console.info = console.debug = console.error;
process.chdir(context.workspace_path);
try {
  const found = await import(module);
  const run = found[hook] ?? found.default?.[hook];
  if (typeof run !== "function") throw new Error(`the module exports no function ${hook}`);
  const result = await run(context, {hookName: hook});
  process.stdout.write("\\n" + JSON.stringify({result: result ?? null}), () => process.exit(0));
} catch (thrown) {
  const said = (thrown?.errors ?? [thrown]).map((error) => error?.message ?? String(error));
  const place = String(thrown?.stack ?? "").split("\\n").find((line) => /^ *at /.test(line)) ?? "";
  process.stderr.write(`\\n${said.join("\\n")}\\n${place}`.trimEnd(), () => process.exit(1));
}
"""
# In a process of its own, isolated: after a trial the agent's links may lie where files are copied to.
_AGENT_RULES: Final = """\
import json, pathlib, shutil, sys
given = json.load(sys.stdin)
workspace = pathlib.Path(given["workspace"])
paths = {}
for kind, named in given["named"].items():
    found = [workspace / place for place in ([] if named else given["usual"][kind])]
    for source in map(pathlib.Path, named):
        copy = workspace / ".agentv/agent-rules" / kind / source.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, copy)
        found.append(copy)
    if there := [str(path) for path in dict.fromkeys(found) if path.exists()]:
        paths[kind] = there
print(json.dumps({"result": {"agent_rules_paths": paths} if paths else None}))
"""
_USUAL: Final = {
    "skills": (".claude/skills", ".agents/skills", ".codex/skills", ".pi/skills", "skills"),
    "hooks": (".claude/hooks", ".agents/hooks", ".codex/hooks", ".pi/hooks", "hooks"),
    "agents": (".agents/agents", ".codex/agents", "agents"),
    "rules": ("AGENTS.md", "CLAUDE.md", "rules"),
}
_RETURNED: Final = {"provider_context": dict, "metadata": dict, "output": str}
_CALLED: Final = {dict: "an object", str: "a text"}


@dataclass(frozen=True)
class ExtensionState:
    """What the extensions of a trial have returned so far. Each one receives what those before it returned."""

    provider_context: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""

    @property
    def context(self) -> dict[str, Any]:
        """Return the keys that are added to the context of the next extension."""
        more = {"metadata": self.metadata, "output": self.output, _PATHS: self.provider_context.get(_PATHS)}
        return {"provider_context": self.provider_context, **{key: value for key, value in more.items() if value}}

    def add(self, returned: Mapping[str, Any]) -> "ExtensionState":
        """Return the state after one more extension."""
        context, metadata = ({**(returned.get(key) or {})} for key in ("provider_context", "metadata"))
        paths, known = {**context, **returned}.get(_PATHS), self.provider_context.get(_PATHS)
        if isinstance(paths, dict) and isinstance(known, dict):
            lists = {kind: (known.get(kind), paths.get(kind)) for kind in {**known, **paths}}
            paths = {
                kind: list(dict.fromkeys(str(item) for listed in pair if isinstance(listed, list) for item in listed))
                for kind, pair in lists.items()
            }
        both = {} if paths is None else {_PATHS: paths}
        return ExtensionState(
            provider_context={**self.provider_context, **context, **both},
            metadata={**self.metadata, **metadata, **both},
            output="\n".join(text for text in (self.output, returned.get("output")) if text),
        )

    def relocate(self, workspace: Path, copy: Path) -> "ExtensionState":
        """Return the same about a copy of the workspace: the paths in it lead into the copy."""
        inside = json.dumps(str(workspace))[1:-1], json.dumps(str(copy))[1:-1]
        texts = json.dumps((self.provider_context, self.metadata, self.output))
        return ExtensionState(*json.loads(texts.replace(*inside)))


async def run_extension(
    extension: Extension,
    workspace: Workspace,
    sandbox: TrialSandbox,
    suites_folder: Path,
    context: Mapping[str, Any],
    environment: Mapping[str, str],
) -> Mapping[str, Any]:
    """Return what an extension returns; `context` is the argument of its function. Raise `MeasurementError` if it
    throws, takes too long, or returns no result.
    """
    if extension.module is not None:
        file = (suites_folder / extension.module).resolve()
        name, folder, command = extension.module, file.parent, [BUN, "-e", _MODULE]
        described = context["eval_dir"] if workspace.folder is None else str(suites_folder / workspace.folder)
        whole = {"hook_name": extension.hook, "workspace_file_dir": described, **context}
        given: dict[str, Any] = {"module": str(file), "hook": extension.hook, "context": whole}
    else:
        rules = extension.agent_rules.model_dump() if extension.agent_rules is not None else {}
        named = {kind: [str((suites_folder / path).resolve()) for path in paths] for kind, paths in rules.items()}
        name, folder, command = "agentv:agent-rules", suites_folder, [sys.executable, "-I", "-c", _AGENT_RULES]
        given = {"workspace": str(sandbox.workspace), "named": named, "usual": _USUAL}
    result = await sandbox.run_for_authors(
        command,
        folder=folder,
        seconds=extension.timeout_seconds,
        stdin=json.dumps(given, default=str).encode("utf-8", "replace"),
        environment=environment,
    )
    name = f"{name}:{extension.hook}"
    refuse_failure(result, extension.timeout_seconds, "the extension", name)
    try:
        returned = parse_json(result.stdout.rstrip("\n").rpartition("\n")[2])["result"]
    except (ValueError, KeyError, TypeError):
        what = f"the extension {name} ended its process before its function had returned"
        raise MeasurementError(what) from None
    for key, kind in _RETURNED.items() if isinstance(returned, dict) else ():
        if not isinstance(returned.get(key), kind | None):
            raise MeasurementError(f"the extension {name} returned a `{key}` that is not {_CALLED[kind]}")
    return returned if isinstance(returned, dict) else {}
