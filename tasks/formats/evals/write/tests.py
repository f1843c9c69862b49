"""A task as a test of an eval file."""

from collections.abc import Mapping
from typing import Any

from passgate.tasks.formats.evals.root_rules import is_timeout
from passgate.tasks.formats.evals.write.graders import written_criteria, written_graders
from passgate.tasks.formats.evals.write.messages import conversation_of, written_messages
from passgate.tasks.formats.evals.write.native import only_passgates
from passgate.tasks.formats.evals.write.workspaces import written_workspace

Said = Mapping[str, Any]
"""A task as task files have it, its paths as the eval file writes them."""

_STRATEGIES = {
    "pass^k": "pass_all",
    "pass@k": "pass_at_k",
    "mean": "mean",
    "confidence_interval": "confidence_interval",
}


def written_test(task: Said) -> dict[str, Any]:
    """A test with what AgentEvals has words for first, then what AgentV has, then what only passgate has."""
    conversation = conversation_of(task)
    graders = conversation.graders if conversation is not None else task["graders"]
    return {
        "id": task["task_id"],
        "suite": task["suite"],
        **{key: task[key] for key in ("description", "tags", "criteria", "note", "conversation_id") if task.get(key)},
        **(conversation.keys if conversation is not None else _input(task["inputs"])),
        **_expected(task),
        **_graders(graders, task, is_conversation=conversation is not None),
        **_execution(task),
        **_run(task),
        **written_workspace(task.get("environment", {}).get("workspace")),
        **{key: task[key] for key in ("metadata",) if key in task},
        **only_passgates(task, is_conversation=conversation is not None),
    }


def _input(inputs: Said) -> dict[str, Any]:
    if inputs.get("prompt"):
        return {"input": inputs["prompt"]}
    messages = inputs.get("messages")
    return {"input": written_messages(messages)} if isinstance(messages, list) else {}


def _expected(task: Said) -> dict[str, Any]:
    if "expected_messages" in task:
        return {"expected_output": written_messages(task["expected_messages"])}
    return {"expected_output": task["expected_output"]} if "expected_output" in task else {}


def _graders(graders: list[Any], task: Said, *, is_conversation: bool) -> dict[str, Any]:
    """The graders of a test. Its own rubric may come first; a judge of the criteria need not be said."""
    tells = str(task.get("criteria", "")).strip() or "expected_output" in task or "expected_messages" in task
    if graders == [{"type": "llm_grader"}] and tells and not is_conversation:
        return {}
    rubric: dict[str, Any] = {}
    if graders and set(graders[0]) == {"type", "criteria"} and graders[0]["type"] == "rubrics":
        rubric, graders = {"rubrics": written_criteria(graders[0]["criteria"])}, graders[1:]
    return {**rubric, **({"assert": written_graders(graders)} if graders else {})}


def _execution(task: Said) -> dict[str, Any]:
    """Under `execution`: target and time of one trial, and the least score that passes."""
    seconds = _seconds(task)
    said = {
        "target": task.get("target"),
        "timeout_seconds": seconds if is_timeout(seconds) else None,
        "threshold": task.get("scoring", {}).get("threshold"),
    }
    known = {key: value for key, value in said.items() if value is not None}
    return {"execution": known} if known else {}


def _seconds(task: Said) -> Any:
    return task.get("environment", {}).get("budgets", {}).get("max_seconds")


def _run(task: Said) -> dict[str, Any]:
    """Under `run`: how often a test is tried, and a time that `execution` cannot say."""
    trials, seconds = task.get("trials", {}), _seconds(task)
    said = {
        "repeat": _repeat(trials) if "k" in trials else None,
        "timeout_seconds": None if is_timeout(seconds) else seconds,
    }
    known = {key: value for key, value in said.items() if value is not None}
    return {"run": known} if known else {}


def _repeat(trials: Said) -> Any:
    if "metric" not in trials:
        return trials["k"]
    return {"count": trials["k"], "strategy": _STRATEGIES[trials["metric"]]}
