"""A task as a test of an eval file."""

from collections.abc import Mapping, Sequence
from typing import Any

from passgate.tasks.formats.evals.map.native import KEY
from passgate.tasks.formats.evals.map.tests import TRACKED
from passgate.tasks.formats.evals.read.top_level import is_timeout
from passgate.tasks.formats.evals.write.graders import written_command, written_criteria, written_graders
from passgate.tasks.formats.rules import HOOKS

Said = Mapping[str, Any]
"""A task as task files have it, its paths as the eval file writes them."""

_CALL_NAMES = {"arguments": "input", "result": "output"}
_REQUIREMENTS = ("required_commands", "required_python_modules")
_TURNS_KEYS = {"type", "turns", "conversation", "aggregation", "on_turn_failure"}
_STRATEGIES = {
    "pass^k": "pass_all",
    "pass@k": "pass_at_k",
    "mean": "mean",
    "confidence_interval": "confidence_interval",
}


def written_messages(messages: Sequence[Said]) -> list[dict[str, Any]]:
    """Messages in the words of eval files."""
    written = []
    for message in messages:
        words = {"role": message["role"], "content": message.get("content", ""), **message}
        if calls := message.get("tool_calls"):
            words["tool_calls"] = [{_CALL_NAMES.get(key, key): call[key] for key in call} for call in calls]
            words = {key: value for key, value in words.items() if value or key != "content"}
        written.append(words)
    return written


def conversation_of(task: Said) -> tuple[dict[str, Any], list[Any]] | None:
    """What a test says of its turns, and the graders of the whole conversation, of a task whose graders are one for
    each thing that the user says; `None` for any other.
    """
    user, graders = task.get("environment", {}).get("user", {}), task["graders"]
    says = user.get("says", [])
    if len(graders) != 1 or set(user) - {"says"} or set(graders[0]) - _TURNS_KEYS or graders[0]["type"] != "turns":
        return None
    turns = graders[0]["turns"]
    if len(turns) != len(says) + 1 or not (task["inputs"].get("prompt") or task["inputs"].get("messages")):
        return None
    opening = task["inputs"].get("prompt") or written_messages(task["inputs"]["messages"])
    inputs = [opening, *says]
    listed = [_turn(said, turn) for said, turn in zip(inputs, turns, strict=True)]
    how = {key: graders[0][key] for key in ("aggregation", "on_turn_failure") if key in graders[0]}
    return {"mode": "conversation", "turns": listed, **how}, graders[0].get("conversation", [])


def _turn(said: Any, turn: Said) -> dict[str, Any]:
    expected = {"expected_output": turn["expected_output"]} if "expected_output" in turn else {}
    graders = {"assert": written_graders(turn["assertions"])} if "assertions" in turn else {}
    return {"input": said, **expected, **graders}


def only_passgates(task: Said, *, is_conversation: bool) -> dict[str, Any]:
    """The mapping `passgate` of a test; nothing where the test says all without it."""
    parts = {
        # What the test says as its `input` is left out.
        "inputs": {key: said for key, said in task["inputs"].items() if key not in {"prompt", "messages"} or not said},
        "environment": _environment(task.get("environment", {}), is_conversation=is_conversation),
        "trials": task["trials"] if "trials" in task and "k" not in task["trials"] else {},
        "tracked_metrics": [] if task["tracked_metrics"] == list(TRACKED) else task["tracked_metrics"],
        "gates": task.get("gates", {}),
        "reference": task.get("reference", {}),
        "scoring": {} if "rule" in task.get("scoring", {}) else {"rule": "all"},
    }
    said = {key: value for key, value in parts.items() if value}
    return {KEY: said} if said else {}


def _environment(environment: Said, *, is_conversation: bool) -> dict[str, Any]:
    budgets = {key: value for key, value in environment.get("budgets", {}).items() if key != "max_seconds"}
    elsewhere = {"workspace", "budgets", *(("user",) if is_conversation else ())}
    rest = {key: value for key, value in environment.items() if key not in elsewhere}
    return rest | ({"budgets": budgets} if budgets else {})


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


def written_test(task: Said) -> dict[str, Any]:
    """A test with what AgentEvals has words for first, then what AgentV has, then what only passgate has."""
    conversation = conversation_of(task)
    asked, graders = conversation or (_input(task["inputs"]), task["graders"])
    seconds = task.get("environment", {}).get("budgets", {}).get("max_seconds")
    return {
        "id": task["task_id"],
        "suite": task["suite"],
        **{key: task[key] for key in ("description", "tags", "criteria", "note", "conversation_id") if task.get(key)},
        **asked,
        **_expected(task),
        **_test_graders(graders, task, is_conversation=conversation is not None),
        **_given(
            "execution",
            target=task.get("target"),
            timeout_seconds=seconds if is_timeout(seconds) else None,
            threshold=task.get("scoring", {}).get("threshold"),
        ),
        # How often the test is tried, and a time that `execution` cannot say.
        **_given(
            "run",
            repeat=_repeat(task.get("trials", {})),
            timeout_seconds=None if is_timeout(seconds) else seconds,
        ),
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


def _test_graders(graders: list[Any], task: Said, *, is_conversation: bool) -> dict[str, Any]:
    """The graders of a test. Its own rubric may come first; a judge of the criteria need not be said."""
    tells = str(task.get("criteria", "")).strip() or "expected_output" in task or "expected_messages" in task
    if graders == [{"type": "llm_grader"}] and tells and not is_conversation:
        return {}
    rubric: dict[str, Any] = {}
    if graders and set(graders[0]) == {"type", "criteria"} and graders[0]["type"] == "rubrics":
        rubric, graders = {"rubrics": written_criteria(graders[0]["criteria"])}, graders[1:]
    return {**rubric, **({"assert": written_graders(graders)} if graders else {})}


def _given(key: str, **said: Any) -> dict[str, Any]:
    known = {name: value for name, value in said.items() if value is not None}
    return {key: known} if known else {}


def _repeat(trials: Said) -> Any:
    if "k" not in trials or "metric" not in trials:
        return trials.get("k")
    return {"count": trials["k"], "strategy": _STRATEGIES[trials["metric"]]}
