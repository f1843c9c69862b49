"""Options of graders, as short as a table of cases wants them."""

from typing import Any

Options = dict[str, Any]

A: Options = {"name": "a", "type": "contains", "value": "Paris"}
"""Has 1 where the answer is about Paris."""
B: Options = {"name": "b", "type": "contains", "value": "Rome"}
"""Has 0 there."""
C: Options = {"name": "c", "type": "contains", "value": "France"}


def output(**fields: Any) -> Options:
    return {"type": "output_check", **fields}


def state(*expect: Options, **fields: Any) -> Options:
    return {"type": "state_check", "expect": expect, **fields}


def metrics(**fields: Any) -> Options:
    return {"type": "trajectory_metrics", **fields}


def execution(**fields: Any) -> Options:
    return {"type": "execution_metrics", **fields}


def tools(*names: str) -> list[Options]:
    """Expected calls of these tools."""
    return [{"tool": name} for name in names]


def used(*tools: str, **fields: Any) -> Options:
    return {"type": "tool_used", "tools": tools, **fields}


def sequence(*steps: str, **fields: Any) -> Options:
    return {"type": "tool_sequence", "steps": steps, **fields}


def arguments(tool: str, args: Options, **fields: Any) -> Options:
    return {"type": "tool_arguments", "tool": tool, "args": args, **fields}


def steps(kind: str = "any", **fields: Any) -> Options:
    return {"type": "step_count", "kind": kind, **fields}


def composite(*members: Options, name: str = "all", **fields: Any) -> Options:
    return {"type": "composite", "name": name, "assertions": members, **fields}


def by(kind: str, **fields: Any) -> Options:
    """The aggregator of a composite."""
    return {"aggregator": {"type": kind, **fields}}


def says(*words: str, **fields: Any) -> Options:
    """A turn whose answer must contain these words."""
    return {"assertions": [{"name": word, "type": "contains", "value": word, **fields} for word in words]}
