"""Commands that prepare and tidy up workspaces."""

from typing import Any

from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Key, Node, Parts, as_number, as_one_of, as_text, take_apart
from passgate.tasks.formats.rules import HOOKS
from passgate.tasks.formats.schema_check import Kind, shown
from passgate.tasks.model.task import Hook

HOOKS_KEYS = {
    "enabled": Key((Kind.TRUTH,)),
    **{name: Key((Kind.MAPPING, Kind.TEXT, Kind.LIST)) for name in HOOKS},
}
HOOK_KEYS = {
    "command": Key((Kind.TEXT, Kind.LIST), spellings=("script",), says="A list of words, or a text for `sh -c`."),
    "cwd": Key((Kind.TEXT,), says="Where it runs; the folder of the file when not given."),
    "timeout_ms": Key((Kind.NUMBER,)),
    "timeout_seconds": Key((Kind.NUMBER,)),
    "reset": Key((Kind.TEXT,), says="Not needed: every trial has a fresh copy."),
}
_RESETS = ("none", "fast", "strict")


def read_hooks(node: Node | None, sources: Sources) -> dict[str, Hook | None]:
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
    return None if hook.get("command") is None and hook.get("reset") is not None else read_hook(hook, sources)


def read_hook(hook: Parts, sources: Sources) -> Hook | None:
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
