"""Graders in the words of eval files, those of AgentEvals where it has them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from passgate.tasks.formats.evals.map.native import NAMESPACE
from passgate.tasks.formats.evals.read.node import snake_case

Said = Mapping[str, Any]
"""A grader as task files have it, its paths as eval files write them."""

_BASE = ("name", "weight", "required", "min_score", "negate")
_NAMES = {"code_grader": "code_judge", "llm_grader": "llm_judge", "llm_rubric": f"{NAMESPACE}llm_rubric"}
_SHELL = ["sh", "-c"]


def written_graders(graders: Sequence[Said]) -> list[dict[str, Any]]:
    """A list of graders as `assert` has it."""
    return [written_grader(grader) for grader in graders]


def written_grader(grader: Said) -> dict[str, Any]:
    """One grader: its type and name first, then its own options, then what all graders have."""
    own = {key: value for key, value in grader.items() if key not in (*_BASE, "type")}
    words = _WRITERS.get(grader["type"], dict)(own)
    kind = words.pop("type", _NAMES.get(grader["type"], grader["type"]))
    base = {key: grader[key] for key in _BASE if key in grader}
    name = {"name": base.pop("name")} if "name" in base else {}
    if kind is None:
        return {**words, **name, **base}
    if snake_case(kind).startswith("not_"):
        base.pop("negate", None)
    return {"type": kind, **name, **words, **base}


def written_criteria(items: Sequence[Said]) -> list[Any]:
    """The items of a rubric; one that is a text and no more is the text."""
    return [_criterion(item, f"rubric-{number}") for number, item in enumerate(items, start=1)]


def written_command(words: Sequence[str]) -> str | list[str]:
    """A command as the text that a shell runs, where it is one."""
    is_text = len(words) == 3 and list(words[:2]) == _SHELL and words[2].strip()
    return words[2] if is_text else list(words)


def _criterion(item: Said, default_id: str) -> Any:
    if item == {"id": default_id, "outcome": item.get("outcome")} and item["outcome"].strip():
        return item["outcome"]
    ranges = item.get("score_ranges", ())
    written = [{"score_range": [each["low"], each["high"]], "outcome": each["outcome"]} for each in ranges]
    return {**item, **({"score_ranges": written} if written else {})}


def _composite(own: Said) -> dict[str, Any]:
    aggregator = own.get("aggregator")
    return {
        "assertions": written_graders(own["assertions"]),
        **({"aggregator": _aggregator(aggregator)} if aggregator is not None else {}),
        **_except(own, "assertions", "aggregator"),
    }


def _aggregator(said: Said) -> dict[str, Any]:
    kind = said.get("type", "weighted_average")
    command = {"command": written_command(said["command"])} if "command" in said else {}
    return {"type": _NAMES.get(kind, kind), **_except(said, "type"), **command}


def _within(name: str, **names: str) -> Callable[[Said], dict[str, Any]]:
    """A grader of the latest AgentV, whose options are its `value`."""
    return lambda own: {"type": f"trajectory:{name}", "value": _renamed(own, **names)}


def _turns(own: Said) -> dict[str, Any]:
    def written(said: Said, key: str) -> dict[str, Any]:
        return {**said, key: written_graders(said[key])} if key in said else dict(said)

    return {**written(own, "conversation"), "turns": [written(turn, "assertions") for turn in own["turns"]]}


def _unavailable(own: Said) -> dict[str, Any]:
    """A grader of another tool in that tool's words."""
    options = dict(own.get("options", {}))
    return {"type": None if own["kind"] == "include" else own["kind"], **options}


def _renamed(said: Said, **names: str) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in said.items()}


def _except(said: Said, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in said.items() if key not in keys}


_WRITERS: Mapping[str, Callable[[Said], dict[str, Any]]] = {
    "code_grader": lambda own: _renamed({**own, "command": written_command(own["command"])}, command="script"),
    "llm_grader": lambda own: _renamed(own, prompt_file="prompt"),
    "rubrics": lambda own: {
        "type": "rubric",
        "rubrics": written_criteria(own["criteria"]),
        **_except(own, "criteria"),
    },
    "javascript": lambda own: _except(own, "cwd"),
    "python": lambda own: _except(own, "cwd"),
    "composite": _composite,
    # Every mode but one needs the key, also where nothing is expected.
    "tool_trajectory": lambda own: {"expected": [], **own} if "mode" in own else dict(own),
    "tool_used": _within("tool-used", tools="name"),
    "tool_sequence": _within("tool-sequence"),
    "tool_arguments": _within("tool-args-match", tool="name"),
    "step_count": _within("step-count", kind="type"),
    "turns": _turns,
    "unavailable": _unavailable,
}
