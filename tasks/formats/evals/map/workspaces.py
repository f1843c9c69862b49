"""The folder that a test works in, as it, its file and the files that these name say."""

from collections.abc import Iterator, Sequence
from typing import Any

from passgate.tasks.formats.evals.map.sources import Sources, present
from passgate.tasks.formats.evals.read.documents import FILE_SCHEME
from passgate.tasks.formats.evals.read.node import (
    Key,
    Node,
    Parts,
    as_count,
    as_items,
    as_mapping,
    as_number,
    as_one_of,
    as_text,
    as_texts,
    take_apart,
)
from passgate.tasks.formats.evals.read.raw import RawTest
from passgate.tasks.formats.rules import HOOKS
from passgate.tasks.formats.schema_check import Kind, shown
from passgate.tasks.model.task import Hook, Repository, Workspace

_ANY, _TEXT, _COMMAND = Key(), Key((Kind.TEXT,)), Key((Kind.MAPPING, Kind.TEXT, Kind.LIST))
_TEXTS = Key((Kind.LIST,), items=(Kind.TEXT,))
WORKSPACE_KEYS = {
    **dict.fromkeys(("template", "isolation", "mode", "path", "name", "description"), _TEXT),
    "repos": Key((Kind.LIST,), items=(Kind.MAPPING,)),
    **dict.fromkeys(("hooks", "env"), Key((Kind.MAPPING,))),
    "docker": _ANY,
}
REQUIREMENT_KEYS = dict.fromkeys(("required_commands", "required_python_modules"), _TEXTS)
_OF_DOCKER = ("context", "dockerfile", "resources", "mounts", "secrets")
ENVIRONMENT_KEYS = {
    **dict.fromkeys(("type", "workdir", "name"), _TEXT),
    "setup": _COMMAND,
    "env": Key((Kind.MAPPING,)),
    **dict.fromkeys(("image", "docker", *_OF_DOCKER), _ANY),
}
HOOKS_KEYS = {"enabled": Key((Kind.TRUTH,)), **dict.fromkeys(HOOKS, _COMMAND)}
HOOK_KEYS = {
    "command": Key((Kind.TEXT, Kind.LIST), spellings=("script",)),
    **dict.fromkeys(("cwd", "reset"), _TEXT),
    **dict.fromkeys(("timeout_ms", "timeout_seconds"), Key((Kind.NUMBER,))),
}
CHECKOUT_KEYS = {"commit": Key((Kind.TEXT,), spellings=("base_commit", "ref")), "ancestor": Key((Kind.WHOLE,))}
REPOSITORY_KEYS = {
    "repo": Key((Kind.TEXT,), spellings=("url",), needed=True),
    "path": _TEXT,
    "sparse": _TEXTS,
    "checkout": Key((Kind.MAPPING,)),
    **CHECKOUT_KEYS,
}
_ISOLATIONS = ("shared", "per_test", "per_case")
_MODES = ("pooled", "temp", "static")
_RESETS = ("none", "fast", "strict")
_NO_DOCKER = "passgate runs nothing in Docker"
_OF_DOCKER_ALONE = "is for `type: docker`, which passgate does not run; leave it out, and limit trials by budgets"
_MOST_ANCESTORS = 100_000


def workspace_of(test: Parts, raw: RawTest, sources: Sources) -> Workspace | None:
    """The workspace of a test. What it says itself goes before what its file says; the folder beside it comes first."""
    own = _said(test.node, sources)
    said = [*own, *_said(raw.context.root, sources), *_modes(raw.runtime.root)]
    template = None if own else raw.workspace
    workspace = _together(said, sources)
    _check_dependencies(test, said, sources)
    if template is None:
        return workspace
    return (workspace or Workspace()).model_copy(update={"template": sources.ground.relative(template)})


def _said(node: Node, sources: Sources) -> tuple[Node, ...]:
    """The mappings of a test or a file, also those that stand in a file of their own."""
    found = present(node.get(key) for key in ("workspace", "environment"))
    return present(_mapping(said, sources) for said in found)


def _modes(root: Node) -> Iterator[Node]:
    """What the runtime policy of a file says of workspaces."""
    policies = present(root.get(name) for name in ("experiment", "execution"))
    return (mode for policy in policies if (mode := as_mapping(policy.get("workspace"))) is not None)


def _mapping(said: Node, sources: Sources) -> Node | None:
    if isinstance(said.value, str):
        path = sources.path(said, said.value.removeprefix(FILE_SCHEME))
        mapping = sources.read_file(path) if path is not None else None
    else:
        mapping = said
    return None if mapping is None or sources.refuses_kind(mapping, (Kind.MAPPING,)) else mapping


def _check_dependencies(test: Parts, said: Sequence[Node], sources: Sources) -> None:
    """Every trial stands alone, so a test cannot need what another one leaves behind."""
    depends = test.get("depends_on")
    if depends is None or not depends.value:
        return
    if any(node.value.get("isolation") == "shared" for node in said):
        sources.cannot_run(depends, "every trial has a workspace of its own: it cannot have that of another test")
    else:
        sources.warn(depends, "every trial stands alone: it is run whatever comes of other tests", at_key=True)


def _together(said: Sequence[Node], sources: Sources) -> Workspace | None:
    """The workspace that mappings say together, of which the first go before the others; `None` without any."""
    fields: dict[str, Any] = {}
    for node in reversed(said):
        read = _environment if "workdir" in node.value or "type" in node.value else _workspace
        fields |= read(node, sources)
    return Workspace(**fields) if fields else None


def _workspace(node: Node, sources: Sources) -> dict[str, Any]:
    parts = take_apart(node, WORKSPACE_KEYS, sources.complaints)
    as_one_of(parts.get("isolation"), _ISOLATIONS, sources.complaints)
    mode = as_one_of(parts.get("mode"), _MODES, sources.complaints)
    itself = parts.get("path") or (parts.get("mode") if mode == "static" else None)
    if itself is not None:
        sources.cannot_run(itself, "every trial has a copy: no folder can be worked in itself", at_key=True)
    sources.cannot_have(parts, {"docker": _NO_DOCKER})
    fields: dict[str, Any] = {**_template(parts.get("template"), sources)}
    if parts.get("repos") is not None:
        repositories = (item for item in as_items(parts.get("repos")) if isinstance(item.value, dict))
        fields["repos"] = present(_repository(item, sources) for item in repositories)
    return {**fields, **_hooks(parts.get("hooks"), sources), **_requirements(as_mapping(parts.get("env")), sources)}


def _template(node: Node | None, sources: Sources) -> dict[str, str]:
    name = as_text(node)
    return {} if node is None or name is None else {"template": sources.folder(node, name)}


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
        for asked in parts.only(*_OF_DOCKER).values():
            sources.refuse(asked, _OF_DOCKER_ALONE, at_key=True)
    variables = as_mapping(parts.get("env"))
    return {
        **_template(parts.get("workdir"), sources),
        **_setup(parts.get("setup"), sources),
        **({"environment": _variables(variables, sources)} if variables else {}),
    }


def _setup(node: Node | None, sources: Sources) -> dict[str, Any]:
    if node is None:
        return {}
    said = node if isinstance(node.value, dict) else node.with_value({"command": node.value})
    hook = _command(take_apart(said, HOOK_KEYS, sources.complaints), sources)
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


def _hooks(node: Node | None, sources: Sources) -> dict[str, Hook | None]:
    """The hooks by their names; `None` for each where they are not enabled."""
    if node is None or not isinstance(node.value, dict):
        return {}
    hooks = take_apart(node, HOOKS_KEYS, sources.complaints)
    if hooks.value("enabled") is False:
        return dict.fromkeys(HOOKS)
    return {name: hook for name in HOOKS if (hook := _hook(hooks.get(name), sources)) is not None}


def _hook(node: Node | None, sources: Sources) -> Hook | None:
    if node is None:
        return None
    if not isinstance(node.value, dict):
        return _built(node, None, None, sources)
    hook = take_apart(node, HOOK_KEYS, sources.complaints)
    as_one_of(hook.get("reset"), _RESETS, sources.complaints)
    return None if hook.get("command") is None and hook.get("reset") is not None else _command(hook, sources)


def _command(hook: Parts, sources: Sources) -> Hook | None:
    """A command with where and how long it runs; `None` where something is wrong with it."""
    command = hook.get("command")
    if not hook.sound:
        return None
    if command is None:
        sources.refuse(hook.node, "the key 'command' is missing")
        return None
    seconds = as_number(hook.get("timeout_seconds"), sources.complaints)
    milliseconds = as_number(hook.get("timeout_ms"), sources.complaints)
    return _built(command, hook.get("cwd"), seconds or (milliseconds and milliseconds / 1000), sources)


def _built(command: Node, cwd: Node | None, seconds: float | None, sources: Sources) -> Hook | None:
    words = _words(command, sources)
    folder = as_text(cwd)
    where = sources.ground.relative(command.folder) if cwd is None or not folder else sources.folder(cwd, folder)
    limit: dict[str, Any] = {"timeout_seconds": seconds} if seconds else {}
    return Hook(command=words, cwd=where, **limit) if words else None


def _words(node: Node, sources: Sources) -> tuple[str, ...]:
    if isinstance(node.value, str) and node.value.strip():
        return ("sh", "-c", node.value)
    if isinstance(node.value, list) and node.value and all(isinstance(word, str) and word for word in node.value):
        return tuple(node.value)
    sources.refuse(node, f"expected a command, a text or a list of texts, not {shown(node.value)}")
    return ()


def _repository(node: Node, sources: Sources) -> Repository | None:
    parts = take_apart(node, REPOSITORY_KEYS, sources.complaints)
    if not parts.sound:
        return None
    checkout = parts.get("checkout")
    pin = parts if checkout is None else take_apart(checkout, CHECKOUT_KEYS, sources.complaints)
    address, path = _address(parts.values["repo"], sources), as_text(parts.get("path")) or "."
    if not pin.sound or address is None:
        return None
    if path.startswith("/") or ".." in path.split("/"):
        sources.refuse(parts.values["path"], f"{path!r} is outside the workspace")
        return None
    return Repository(
        path=path,
        repo=address,
        commit=as_text(pin.get("commit")),
        ancestor=as_count(pin.get("ancestor"), sources.complaints, most=_MOST_ANCESTORS) or 0,
        sparse=as_texts(parts.get("sparse")),
    )


def _address(node: Node, sources: Sources) -> str | None:
    """A URL or `owner/name`; a path that begins with a dot or a slash has to be there."""
    address = as_text(node)
    if address is None:
        sources.cannot_run(node, "there is no repository without an address")
    if address is None or not address.startswith((".", "/")):
        return address
    return sources.folder(node, address)
