"""Where tests run, wherever an eval file sets it: template, repositories, hooks and extensions."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from passgate.tasks.formats.evals.documents import FILE_SCHEME
from passgate.tasks.formats.evals.node import Node, as_mapping, as_text, as_texts
from passgate.tasks.formats.evals.raw import RawTest
from passgate.tasks.formats.evals.words import AS_WHOLE, EvalWords, Parts, Sources, present, take_apart, word
from passgate.tasks.formats.rules import HOOKS
from passgate.tasks.formats.schema_check import shown
from passgate.tasks.model.base import Amount
from passgate.tasks.model.task import AgentRules, Extension, Hook, Repository, TargetHooks, Workspace

Command = str | list[Any]
Paths = str | list[str]


class WorkspaceWords(EvalWords):
    """The folder that the agent works in."""

    UNUSED = ("name", "description")

    template: str = word("A folder that every trial begins with a copy of.")
    repos: list[dict[str, Any]] = word("Git repositories in it.")
    hooks: dict[str, Any] = word("Commands around trials.")
    env: dict[str, Any] = word("What the machine must have.")
    isolation: Literal["shared", "per_test", "per_case"] = word("Every trial has its own copy anyway.")
    mode: Literal["pooled", "temp", "static"] = word("How AgentV keeps it.")
    path: str = word("A folder to work in itself; passgate works in copies.")
    docker: Any = word("An image; passgate runs nothing in Docker.")


class Requirements(EvalWords):
    """What the machine must have."""

    required_commands: list[str] = word("Programs.")
    required_python_modules: list[str] = word("Modules.")


class EnvironmentWords(EvalWords):
    """The folder that the agent works in, and its variables."""

    type: Literal["host", "docker"] = word("Where it is; passgate runs nothing in Docker.")
    workdir: str = word("A folder that every trial begins with a copy of.")
    setup: Command | dict[str, Any] = word("A command that makes the folder ready.")
    env: dict[str, Any] = word("Environment variables.")
    name: str = word("For readers.")
    image: Any = word("For Docker.")
    docker: Any = word("For Docker.")
    context: Any = word("For Docker.")
    dockerfile: Any = word("For Docker.")
    resources: Any = word("For Docker.")
    mounts: Any = word("For Docker.")
    secrets: Any = word("For Docker.")


class HooksWords(EvalWords):
    """Commands around trials."""

    enabled: bool = word("Whether they run.")
    before_all: Command | dict[str, Any] = word("Once per run.")
    before_each: Command | dict[str, Any] = word("Before each trial.")
    after_each: Command | dict[str, Any] = word("After each trial.")
    after_all: Command | dict[str, Any] = word("Once at the end of the run.")


class HookWords(EvalWords):
    """A command."""

    command: Command = word("A text for a shell, or words.", "command", "script")
    cwd: str = word("Where it runs; the folder of the file when not given.")
    timeout_seconds: Amount = word("How long it may take.")
    timeout_ms: Amount = word("How long it may take.")
    reset: Literal["none", "fast", "strict"] = word("What is undone after it; every trial has a fresh copy.")


class CheckoutWords(EvalWords):
    """What of a repository is checked out."""

    commit: str = word("A commit, tag or branch.", "commit", "base_commit", "ref")
    ancestor: Annotated[int, Field(ge=0, le=100_000), AS_WHOLE] = word("How many first parents before it.")


class RepositoryWords(CheckoutWords):
    """A Git repository in the workspace."""

    repo: str = word("A URL, a path, or `owner/name` of GitHub.", "repo", "url", needed=True)
    path: str = word("Where in the workspace.")
    sparse: list[str] = word("Only these folders.")
    checkout: dict[str, Any] = word("`commit` and `ancestor`, as beside it.")


class Rules(EvalWords):
    """Paths of rules of agents that are copied into the workspace."""

    skills: Paths = word("Paths of skills that are copied into the workspace.")
    hooks: Paths = word("Paths of hooks that are copied into the workspace.")
    agents: Paths = word("Paths of agents that are copied into the workspace.")
    rules: Paths = word("Paths of rules that are copied into the workspace.")


class ExtensionWords(Rules):
    """What finds the rules of an agent."""

    id: str = word("`agentv:agent-rules`; a module stands as a text.")
    hook: Literal["beforeAll", "beforeEach", "afterEach", "afterAll"] = word("When it runs.")
    config: dict[str, Any] = word("The paths, as beside it.")


_OF_DOCKER = ("context", "dockerfile", "resources", "mounts", "secrets")
EXTENSION_HOOKS: Final = ("beforeAll", "beforeEach", "afterEach", "afterAll")
AGENT_RULES = "agentv:agent-rules"
_MODULES = re.compile(r".+\.[cm]?[jt]sx?")
_EXTENSION = f"expected `{FILE_SCHEME}PATH:HOOK` or `{AGENT_RULES}:HOOK`, with one of {', '.join(EXTENSION_HOOKS)}"
_NO_MODULE = (
    "is not a JavaScript or TypeScript module; give another program as `workspace: {hooks: {before_each: ...}}`"
)
_OF_SETUP = (
    "passgate copies it before `setup` runs; for a repository write `workspace: {repos: [{repo: URL, commit: SHA}]}`, "
    'else leave `workdir` out and let `setup` write into "$WORKSPACE_PATH"'
)
_NO_DOCKER = "passgate runs nothing in Docker"
_OF_DOCKER_ALONE = "is for `type: docker`, which passgate does not run; leave it out, and limit trials by budgets"


def read_workspace(test: Parts, raw: RawTest, of_targets: Sequence[TargetHooks], sources: Sources) -> Workspace | None:
    """Return the workspace of a test: its own keys before its file's, else the folder beside it."""
    own = _workspaces(test, sources)
    policies = present(raw.runtime.root.get(name) for name in ("experiment", "execution"))
    modes = present(as_mapping(policy.get("workspace")) for policy in policies)
    said = (*own, *_workspaces(raw.context.root, sources), *modes)
    fields: dict[str, Any] = {}
    for node in reversed(said):
        read = _environment if "workdir" in node.value or "type" in node.value else _workspace
        fields |= read(node, sources)
    depends = test.get("depends_on")
    if depends is not None and depends.value:
        # Every trial stands alone, so a test cannot need what another one leaves behind.
        if any(node.value.get("isolation") == "shared" for node in said):
            sources.cannot_run(depends, "every trial has a workspace of its own: it cannot have that of another test")
        else:
            sources.warn(depends, "every trial stands alone: it is run whatever comes of other tests", at_key=True)
    if raw.workspace is not None and not own:
        fields["template"] = sources.ground.relative(raw.workspace)
    listed = test.get("extensions") or raw.context.root.get("extensions")
    items = () if listed is None or sources.refuses_type(listed, list) else listed.items()
    if extensions := present(_extension(item, sources) for item in items):
        fields["extensions"] = extensions
        described = [node.folder for node in said if not node.path]  # those of files of their own
        fields |= {"folder": sources.ground.relative(described[0])} if described else {}
    if of_targets:
        fields["target_hooks"] = of_targets
    return Workspace(**fields) if fields else None


def _workspaces(parts: Parts, sources: Sources) -> list[Node]:
    """Return the workspace mappings of a test or a file, written there or in a file that it names."""
    found = []
    for said in present(parts.get(key) for key in ("workspace", "environment")):
        mapping: Node | None = said
        if isinstance(said.value, str):
            path = sources.path(said, said.value.removeprefix(FILE_SCHEME))
            mapping = sources.documents.read(path) if path is not None else None
        if mapping is not None and not sources.refuses_type(mapping, dict):
            found.append(mapping)
    return found


def _workspace(node: Node, sources: Sources) -> dict[str, Any]:
    parts = take_apart(node, WorkspaceWords, sources)
    itself = parts.get("path") or (parts.get("mode") if parts.value("mode") == "static" else None)
    if itself is not None:
        sources.cannot_run(itself, "every trial has a copy: no folder can be worked in itself", at_key=True)
    sources.cannot_have(parts, {"docker": _NO_DOCKER})
    fields: dict[str, Any] = _template(parts.get("template"), sources)
    if parts.get("repos") is not None:
        fields["repos"] = present(_repository(item, sources) for item in parts.values["repos"].items())
    fields |= read_hooks(parts.get("hooks"), sources)
    if needs := parts.get("env"):
        said = take_apart(needs, Requirements, sources).values
        fields |= {key: as_texts(part) for key, part in said.items()}
    return fields


def _template(node: Node | None, sources: Sources, hint: str = "") -> dict[str, Any]:
    name = as_text(node)
    if node is None or name is None:
        return {}
    before = len(sources.complaints.cannot_run)
    folder = sources.folder(node, name)
    if hint and len(sources.complaints.cannot_run) > before:
        sources.complaints.cannot_run[before:] = [node.problem(f"no file {name!r}: {hint}")]
    return {"template": folder}


def _environment(node: Node, sources: Sources) -> dict[str, Any]:
    parts = take_apart(node, EnvironmentWords, sources)
    if parts.value("type") == "docker" or parts.get("docker") is not None or parts.get("image") is not None:
        sources.cannot_run(node, _NO_DOCKER, at_key=True)
    else:
        for asked in parts.only(*_OF_DOCKER).values():
            sources.refuse(asked, _OF_DOCKER_ALONE, at_key=True)
    setup = parts.get("setup")
    fields = _template(parts.get("workdir"), sources, _OF_SETUP if setup is not None else "")
    if setup is not None:
        said = setup if isinstance(setup.value, dict) else setup.with_value({"command": setup.value})
        hook = _command(take_apart(said, HookWords, sources), sources)
        fields |= {} if hook is None else {"before_all": hook}
    if variables := parts.get("env"):
        fields["environment"] = {}
        for key, value in variables.value.items():
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                fields["environment"][str(key)] = str(value)
            else:
                sources.refuse(variables.child(key), "expected a text or a number")
    return fields


def read_hooks(node: Node | None, sources: Sources) -> dict[str, Hook | None]:
    """Return the hooks by their names; each is `None` when hooks are not enabled."""
    if node is None:
        return {}
    hooks = take_apart(node, HooksWords, sources)
    if hooks.value("enabled") is False:
        return dict.fromkeys(HOOKS)
    read: dict[str, Hook | None] = {}
    for name, said in hooks.only(*HOOKS).items():
        if not isinstance(said.value, dict):
            read[name] = _command(Parts(said, {"command": said}, {}, frozenset(), sound=True), sources)
            continue
        hook = take_apart(said, HookWords, sources)
        # A hook that only resets has nothing to do: every trial begins with a fresh workspace.
        if hook.get("command") is not None or hook.get("reset") is None:
            read[name] = _command(hook, sources)
    return {name: hook for name, hook in read.items() if hook is not None}


def _extension(node: Node, sources: Sources) -> Extension | None:
    if isinstance(node.value, dict):
        return _described_extension(node, sources)
    said = f"{AGENT_RULES}:beforeAll" if node.value == AGENT_RULES else node.value
    name, _, wanted = said.rpartition(":") if isinstance(said, str) else ("", "", "")
    hook = next((hook for hook in EXTENSION_HOOKS if hook == wanted), None)
    module = name.removeprefix(FILE_SCHEME)
    if hook is None or name not in {AGENT_RULES, f"{FILE_SCHEME}{module}"} or not module:
        sources.refuse(node, _EXTENSION)
        return None
    if name == AGENT_RULES:
        return Extension(hook=hook, agent_rules=AgentRules())
    if not _MODULES.fullmatch(module):
        sources.refuse(node, f"{module!r} {_NO_MODULE}")
        return None
    path = sources.path(node, module)
    return Extension(hook=hook, module=module if path is None else sources.ground.relative(path))


def _described_extension(node: Node, sources: Sources) -> Extension | None:
    parts = take_apart(node, ExtensionWords, sources)
    if parts.value("id") != AGENT_RULES:
        sources.refuse(parts.get("id") or node, f"`id` must be {AGENT_RULES}; a module stands as a text")
        return None
    config = parts.get("config")
    rules = parts if config is None else take_apart(config, Rules, sources)
    paths: dict[str, tuple[str, ...]] = {}
    for kind, part in rules.only(*Rules.model_fields).items():
        listed = part.items() if isinstance(part.value, list) else (part,)
        found = present(sources.path(item, item.value) for item in listed if isinstance(item.value, str))
        paths[kind] = tuple(map(sources.ground.relative, found))
    return Extension(hook=parts.value("hook", "beforeAll"), agent_rules=AgentRules(**paths))


def _command(hook: Parts, sources: Sources) -> Hook | None:
    command, cwd = hook.get("command"), hook.get("cwd")
    if not hook.sound:
        return None
    if command is None:
        sources.refuse(hook.node, "the key 'command' is missing")
        return None
    limit = hook.value("timeout_seconds") or hook.value("timeout_ms", 0) / 1000
    words = command.value
    if isinstance(words, str) and words.strip():
        words = ["sh", "-c", words]
    elif not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        sources.refuse(command, f"expected a command, a text or a list of texts, not {shown(words)}")
        words = []
    folder = as_text(cwd)
    where = sources.ground.relative(command.folder) if cwd is None or not folder else sources.folder(cwd, folder)
    given: dict[str, Any] = {"timeout_seconds": limit} if limit else {}
    return Hook(command=tuple(words), cwd=where, **given) if words else None


def _repository(node: Node, sources: Sources) -> Repository | None:
    parts = take_apart(node, RepositoryWords, sources)
    if not parts.sound:
        return None
    checkout = parts.get("checkout")
    pin = parts if checkout is None else take_apart(checkout, CheckoutWords, sources)
    # The address is a URL or `owner/name`. A path, which begins with a dot or a slash, must exist.
    address, path = as_text(parts.values["repo"]), as_text(parts.get("path")) or "."
    if address is None:
        sources.cannot_run(parts.values["repo"], "there is no repository without an address")
    elif address.startswith((".", "/")):
        address = sources.folder(parts.values["repo"], address)
    if not pin.sound or address is None:
        return None
    if path.startswith("/") or ".." in path.split("/"):
        sources.refuse(parts.values["path"], f"{path!r} is outside the workspace")
        return None
    return Repository(
        path=path,
        repo=address,
        commit=pin.value("commit") or None,
        ancestor=pin.value("ancestor", 0),
        sparse=as_texts(parts.get("sparse")),
    )
