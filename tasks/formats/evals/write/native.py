"""What only passgate knows of a task, for the key `passgate` of a test."""

from collections.abc import Mapping
from typing import Any

from passgate.tasks.formats.evals.map.native_keys import KEY
from passgate.tasks.formats.evals.map.tests import TRACKED

Said = Mapping[str, Any]


def only_passgates(task: Said, *, is_conversation: bool) -> dict[str, Any]:
    """The mapping `passgate` of a test; nothing where the test says all without it."""
    parts = {
        "inputs": {key: value for key, value in task["inputs"].items() if not _is_input(key, value)},
        "environment": _environment(task.get("environment", {}), is_conversation=is_conversation),
        "trials": task["trials"] if "trials" in task and "k" not in task["trials"] else {},
        "tracked_metrics": [] if task["tracked_metrics"] == list(TRACKED) else task["tracked_metrics"],
        "gates": task.get("gates", {}),
        "reference": task.get("reference", {}),
        "scoring": {} if "rule" in task.get("scoring", {}) else {"rule": "all"},
    }
    said = {key: value for key, value in parts.items() if value}
    return {KEY: said} if said else {}


def _is_input(key: str, value: Any) -> bool:
    """Whether the test says it as its `input`."""
    return key in {"prompt", "messages"} and bool(value)


def _environment(environment: Said, *, is_conversation: bool) -> dict[str, Any]:
    budgets = {key: value for key, value in environment.get("budgets", {}).items() if key != "max_seconds"}
    elsewhere = {"workspace", "budgets", *(("user",) if is_conversation else ())}
    rest = {key: value for key, value in environment.items() if key not in elsewhere}
    return {**rest, **({"budgets": budgets} if budgets else {})}
