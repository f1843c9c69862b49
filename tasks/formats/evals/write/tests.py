"""A task and its graders as a test of an eval file, in the words of AgentEvals where it has them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from passgate.tasks.formats.evals.map.native import KEY, NAMESPACE
from passgate.tasks.formats.evals.map.tests import TRACKED
from passgate.tasks.formats.evals.read.node import snake_case
from passgate.tasks.formats.evals.read.top_level import is_timeout
from passgate.tasks.formats.rules import HOOKS

Said = Mapping[str, Any]  # a task or a part of it as task files have it, its paths as the eval file writes them

_BASE = ("name", "weight", "required", "min_score", "negate")
_NAMES = {"code_grader": "code_judge", "llm_grader": "llm_judge", "llm_rubric": f"{NAMESPACE}llm_rubric"}
_SHELL = ["sh", "-c"]
_CALL_NAMES = {"arguments": "input", "result": "output"}
_TURNS_KEYS = {"type", "turns", "conversation", "aggregation", "on_turn_failure"}
_STRATEGIES = {
    "pass^k": "pass_all",
    "pass@k": "pass_at_k",
    "mean": "mean",
    "confidence_interval": "confidence_interval",
}


def written_test(task: Said) -> dict[str, Any]:
    """A test with what AgentEvals has words for first, then what AgentV has, then what only passgate has."""
    environment, inputs, trials = task.get("environment", {}), task["inputs"], task.get("trials", {})
    conversation = conversation_of(task)
    asked, graders = conversation or ({}, task["graders"])
    if conversation is None and inputs.get("prompt"):
        asked = {"input": inputs["prompt"]}
    elif conversation is None and isinstance(inputs.get("messages"), list):
        asked = {"input": written_messages(inputs["messages"])}
    expected = _only(task, "expected_output")
    if "expected_messages" in task:
        expected = {"expected_output": written_messages(task["expected_messages"])}
    seconds, threshold = environment.get("budgets", {}).get("max_seconds"), task.get("scoring", {}).get("threshold")
    execution: dict[str, Any] = {"target": task.get("target")}
    run: dict[str, Any] = {"repeat": trials.get("k")}
    if "k" in trials and "metric" in trials:
        run["repeat"] = {"count": trials["k"], "strategy": _STRATEGIES[trials["metric"]]}
    # `execution` has whole seconds up to an hour; `run` takes any.
    (execution if is_timeout(seconds) else run)["timeout_seconds"] = seconds
    return {
        "id": task["task_id"],
        "suite": task["suite"],
        **{key: task[key] for key in ("description", "tags", "criteria", "note", "conversation_id") if task.get(key)},
        **asked,
        **expected,
        **_test_graders(graders, task, is_conversation=conversation is not None),
        **_given({"execution": _given({**execution, "threshold": threshold}), "run": _given(run)}),
        **_written_workspace(environment.get("workspace")),
        **_only(task, "metadata"),
        **only_passgates(task, is_conversation=conversation is not None),
    }


def written_messages(messages: Sequence[Said]) -> list[dict[str, Any]]:
    """Messages in the words of eval files."""
    written = []
    for message in messages:
        words = {"role": message["role"], "content": message.get("content", ""), **message}
        if calls := message.get("tool_calls"):
            words["tool_calls"] = [_renamed(call, **_CALL_NAMES) for call in calls]
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
    listed = [
        {"input": said, **_only(turn, "expected_output"), **_graders_at("assert", turn, "assertions")}
        for said, turn in zip([opening, *says], turns, strict=True)
    ]
    how = _only(graders[0], "aggregation", "on_turn_failure")
    return {"mode": "conversation", "turns": listed, **how}, graders[0].get("conversation", [])


def only_passgates(task: Said, *, is_conversation: bool) -> dict[str, Any]:
    """The mapping `passgate` of a test; nothing where the test says all without it."""
    environment = task.get("environment", {})
    # A workspace has words of its own, and so has the user of a conversation.
    elsewhere = ("workspace", "budgets", *(("user",) if is_conversation else ()))
    budgets = _given({"budgets": _except(environment.get("budgets", {}), "max_seconds")})
    parts = {
        # What the test says as its `input` is left out.
        "inputs": {key: said for key, said in task["inputs"].items() if key not in {"prompt", "messages"} or not said},
        "environment": _except(environment, *elsewhere) | budgets,
        "trials": task["trials"] if "trials" in task and "k" not in task["trials"] else {},
        "tracked_metrics": [] if task["tracked_metrics"] == list(TRACKED) else task["tracked_metrics"],
        "gates": task.get("gates", {}),
        "reference": task.get("reference", {}),
        # Tests of eval files are scored by a weighted average where nothing is said; tasks by all of their graders.
        "scoring": {} if "rule" in task.get("scoring", {}) else {"rule": "all"},
    }
    return _given({KEY: {key: value for key, value in parts.items() if value}})


def _written_workspace(workspace: Said | None) -> dict[str, Any]:
    if workspace is None:
        return {}
    hooks = {}
    for name, hook in _only(workspace, *HOOKS).items():
        command, rest = written_command(hook["command"]), _except(hook, "command")
        hooks[name] = {"command": command, **rest} if rest or isinstance(command, list) else command
    needs = _only(workspace, "required_commands", "required_python_modules")
    said = {**_only(workspace, "template", "repos"), **_given({"hooks": hooks, "env": needs})}
    variables = workspace.get("environment")
    return {
        # A workspace of which nothing is said is one all the same.
        **({"workspace": said or {"repos": []}} if said or not variables else {}),
        # Only the `environment` of the newest dialect has variables.
        **({"environment": {"type": "host", "env": variables}} if variables else {}),
    }


def _test_graders(graders: list[Any], task: Said, *, is_conversation: bool) -> dict[str, Any]:
    tells = str(task.get("criteria", "")).strip() or "expected_output" in task or "expected_messages" in task
    # A judge of the criteria is what a test without graders has.
    if graders == [{"type": "llm_grader"}] and tells and not is_conversation:
        return {}
    rubric: dict[str, Any] = {}
    # A test's own rubric comes first, so no other place than the first can be written as one.
    if graders and set(graders[0]) == {"type", "criteria"} and graders[0]["type"] == "rubrics":
        rubric, graders = {"rubrics": written_criteria(graders[0]["criteria"])}, graders[1:]
    return {**rubric, **({"assert": written_graders(graders)} if graders else {})}


def written_graders(graders: Sequence[Said]) -> list[dict[str, Any]]:
    """A list of graders as `assert` has it."""
    return [written_grader(grader) for grader in graders]


def written_grader(grader: Said) -> dict[str, Any]:
    """One grader: its type and name first, then its own options, then what all graders have."""
    words = _WRITERS.get(grader["type"], dict)(_except(grader, *_BASE, "type"))
    kind = words.pop("type", _NAMES.get(grader["type"], grader["type"]))
    name, base = _only(grader, "name"), _only(grader, *_BASE[1:])
    if kind is None:
        return {**words, **name, **base}
    if snake_case(kind).startswith("not_"):  # the type of a grader that passgate does not have: `negate` is in it
        base.pop("negate", None)
    return {"type": kind, **name, **words, **base}


def written_criteria(items: Sequence[Said]) -> list[Any]:
    """The items of a rubric; one that is a text and no more is the text."""
    written: list[Any] = []
    for number, item in enumerate(items, start=1):
        # The id that an item gets by its place need not be said.
        if item == {"id": f"rubric-{number}", "outcome": item.get("outcome")} and item["outcome"].strip():
            written.append(item["outcome"])
            continue
        spans = item.get("score_ranges", ())
        ranges = [{"score_range": [span["low"], span["high"]], "outcome": span["outcome"]} for span in spans]
        written.append({**item, **({"score_ranges": ranges} if ranges else {})})
    return written


def written_command(words: Sequence[str]) -> str | list[str]:
    """A command as the text that a shell runs, where it is one."""
    is_text = len(words) == 3 and list(words[:2]) == _SHELL and words[2].strip()
    return words[2] if is_text else list(words)


def _graders_at(name: str, said: Said, key: str) -> dict[str, Any]:
    return {name: written_graders(said[key])} if key in said else {}


def _composite(own: Said) -> dict[str, Any]:
    written: dict[str, Any] = {"assertions": written_graders(own["assertions"])}
    said = own.get("aggregator")
    if said is not None:
        kind = said.get("type", "weighted_average")
        command = {"command": written_command(said["command"])} if "command" in said else {}
        written["aggregator"] = {"type": _NAMES.get(kind, kind), **_except(said, "type"), **command}
    return {**written, **_except(own, "assertions", "aggregator")}


def _within(name: str, **names: str) -> Callable[[Said], dict[str, Any]]:
    """A grader of the latest AgentV, whose options are its `value`."""
    return lambda own: {"type": f"trajectory:{name}", "value": _renamed(own, **names)}


def _turns(own: Said) -> dict[str, Any]:
    turns = [{**turn, **_graders_at("assertions", turn, "assertions")} for turn in own["turns"]]
    return {**own, **_graders_at("conversation", own, "conversation"), "turns": turns}


def _renamed(said: Said, **names: str) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in said.items()}


def _except(said: Said, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in said.items() if key not in keys}


def _only(said: Said, *keys: str) -> dict[str, Any]:
    return {key: said[key] for key in keys if key in said}


def _given(said: Said) -> dict[str, Any]:
    return {key: value for key, value in said.items() if value is not None and value != {}}


_WRITERS: Mapping[str, Callable[[Said], dict[str, Any]]] = {
    "code_grader": lambda own: _renamed({**own, "command": written_command(own["command"])}, command="script"),
    "llm_grader": lambda own: _renamed(own, prompt_file="prompt"),
    "rubrics": lambda own: {"type": "rubric", "rubrics": written_criteria(own["criteria"]), **_except(own, "criteria")},
    # A script runs in the folder of its file, which no key can say.
    **dict.fromkeys(("javascript", "python"), lambda own: _except(own, "cwd")),
    "composite": _composite,
    # Every mode but one needs the key, also where nothing is expected.
    "tool_trajectory": lambda own: {"expected": [], **own} if "mode" in own else dict(own),
    "tool_used": _within("tool-used", tools="name"),
    "tool_sequence": _within("tool-sequence"),
    "tool_arguments": _within("tool-args-match", tool="name"),
    "step_count": _within("step-count", kind="type"),
    "turns": _turns,
    # A grader of another tool is written in that tool's words. An include that was not found has no type.
    "unavailable": lambda own: {"type": None if own["kind"] == "include" else own["kind"], **own.get("options", {})},
}
