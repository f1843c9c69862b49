"""Tasks as tests, in AgentEvals' words where it has them, and as documents: an EVAL.yaml, or JSONL and its sidecar."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import yaml

from passgate.tasks.formats.evals.map.native import KEY, NAMESPACE
from passgate.tasks.formats.evals.map.tests import TRACKED
from passgate.tasks.formats.evals.read.case_files import CASE_FILES
from passgate.tasks.formats.evals.read.node import snake_case
from passgate.tasks.formats.evals.read.top_level import is_timeout
from passgate.tasks.formats.evals.write.workspaces import (
    Said,
    given,
    only,
    without,
    written_command,
    written_target,
    written_workspace,
)
from passgate.tasks.model.json_values import strictly_equal

_BASE = ("name", "weight", "required", "min_score", "negate")
_NAMES = {"code_grader": "code_judge", "llm_grader": "llm_judge", "llm_rubric": f"{NAMESPACE}llm_rubric"}
_CALL_NAMES = {"arguments": "input", "result": "output"}
_TURNS_KEYS = {"type", "turns", "conversation", "aggregation", "on_turn_failure"}
_STRATEGIES = {
    "pass^k": "pass_all",
    "pass@k": "pass_at_k",
    "mean": "mean",
    "confidence_interval": "confidence_interval",
}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 120
# Names of files that are no tasks.
_MEANT_OTHERWISE = frozenset({*(name.partition(".")[0] for name in CASE_FILES), "eval", "gates", "agents", "prices"})
_WIDTH = 2**31  # no line is broken: a text of one line stays in one
# Some version of YAML reads these as a number or a truth value. PyYAML quotes only those of its own version.
_LOOKS_OTHERWISE = re.compile(
    r"[-+]?(0o?[0-7_]+|0x[0-9a-f_]+|0b[01_]+|(\.\d+|\d[\d_]*(\.\d*)?)(e[-+]?\d+)?|\.(inf|nan))|y|n|null|true|false",
    re.IGNORECASE,
)
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")
_SHARED = ("suite", "execution", "run", "workspace", "environment", "extensions")
_LONGEST_NAME = 64  # of a suite, in AgentEvals
_NO_NAME = "tests"


def file_names(ids: Iterable[str]) -> list[str]:
    """A file name without suffix for each id: safe in every file system, and unique even where case does not count."""
    taken: set[str] = set()
    names = []
    for task_id in ids:
        # passgate skips files whose names begin with a dot or an underscore.
        wanted = _UNSAFE.sub("-", task_id)[:_LONGEST].lstrip("._-").rstrip(".-") or "task"
        lower = wanted.lower()
        if lower in _MEANT_OTHERWISE or lower.endswith(".eval") or lower.startswith("dataset"):
            wanted = f"{wanted}-task"
        name, number = wanted, 2
        while name.lower() in taken:
            name, number = f"{wanted}-{number}", number + 1
        taken.add(name.lower())
        names.append(name)
    return names


def yaml_text(document: Any) -> str:
    """A document of JSON values as YAML, keys in their order. Reading it gives the same document."""
    return yaml.dump(
        document, Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=False
    )


class _BlockDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Items of lists are indented, as in the files that people write."""
        super().increase_indent(flow, False)


def _style(text: str) -> str | None:
    if _OTHER_BREAKS.search(text):  # YAML escapes them only between double quotes
        return '"'
    if "\n" in text:
        return "|" if text.strip() else '"'
    return "'" if _LOOKS_OTHERWISE.fullmatch(text) else None


_BlockDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))
)


def eval_document(name: str, tasks: Sequence[Said]) -> dict[str, Any]:
    """An EVAL.yaml with the tests of tasks. What all of them say stands once, above them."""
    shared, tests = _apart(tasks)
    return {"name": suite_name(name), **shared, "tests": tests}


def eval_text(document: Said, schema: str | None) -> str:
    """The text of an EVAL.yaml. `schema` is the path or URL of its JSON Schema, for editors."""
    head = f"# yaml-language-server: $schema={schema}\n" if schema is not None else ""
    return head + yaml_text(document)


def lines_texts(name: str, tasks: Sequence[Said]) -> tuple[str, str]:
    """The text of a JSONL file, one test a line, and that of its sidecar."""
    shared, tests = _apart(tasks)
    lines = "".join(json.dumps(test, ensure_ascii=False, allow_nan=False) + "\n" for test in tests)
    return lines, yaml_text({"name": suite_name(name), **shared})


def suite_name(name: str) -> str:
    """A name as AgentEvals has them: 2 to 64 small letters, digits and hyphens, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    plain = plain if plain[:1].isalpha() else f"{_NO_NAME}-{plain}".strip("-")
    plain = plain[:_LONGEST_NAME].strip("-")
    return plain if len(plain) > 1 else _NO_NAME


def _apart(tasks: Sequence[Said]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What all tests say, and the tests without that."""
    tests = [written_test(task) for task in tasks]
    shared: dict[str, Any] = {}
    for key in _SHARED:
        first = tests[0].get(key)
        # A test's metadata win over what its file says. A single test keeps all its keys but for two.
        of_metadata = key == "suite" and any("suite" in test.get("metadata", {}) for test in tests)
        said = first is not None and not of_metadata and (len(tests) > 1 or key in {"suite", "extensions"})
        if said and all(strictly_equal(test.get(key), first) for test in tests[1:]):
            shared[key] = first
    apart = [{key: value for key, value in test.items() if key not in shared} for test in tests]
    suite = {"suite": shared.pop("suite")} if "suite" in shared else {}
    return {**suite, **shared}, apart


def written_test(task: Said) -> dict[str, Any]:
    """A test with what AgentEvals has words for first, then what AgentV has, then what only passgate has."""
    environment, inputs, trials = task.get("environment", {}), task["inputs"], task.get("trials", {})
    conversation = conversation_of(task)
    asked, graders = conversation or ({}, task["graders"])
    if conversation is None and inputs.get("prompt"):
        asked = {"input": inputs["prompt"]}
    elif conversation is None and isinstance(inputs.get("messages"), list):
        asked = {"input": written_messages(inputs["messages"])}
    expected = only(task, "expected_output")
    if "expected_messages" in task:
        expected = {"expected_output": written_messages(task["expected_messages"])}
    seconds, threshold = environment.get("budgets", {}).get("max_seconds"), task.get("scoring", {}).get("threshold")
    execution = written_target(task)
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
        **given({"execution": given({**execution, "threshold": threshold}), "run": given(run)}),
        **written_workspace(environment.get("workspace")),
        **only(task, "metadata"),
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
        {"input": said, **only(turn, "expected_output"), **_graders_at("assert", turn, "assertions")}
        for said, turn in zip([opening, *says], turns, strict=True)
    ]
    how = only(graders[0], "aggregation", "on_turn_failure")
    return {"mode": "conversation", "turns": listed, **how}, graders[0].get("conversation", [])


def only_passgates(task: Said, *, is_conversation: bool) -> dict[str, Any]:
    """The mapping `passgate` of a test; nothing where the test says all without it."""
    environment = task.get("environment", {})
    # The workspace and the user of a conversation have keys of their own.
    elsewhere = ("workspace", "budgets", *(("user",) if is_conversation else ()))
    budgets = given({"budgets": without(environment.get("budgets", {}), "max_seconds")})
    parts = {
        # The test says these as its `input`.
        "inputs": {key: said for key, said in task["inputs"].items() if key not in {"prompt", "messages"} or not said},
        "environment": without(environment, *elsewhere) | budgets,
        "trials": task["trials"] if "trials" in task and "k" not in task["trials"] else {},
        "tracked_metrics": [] if task["tracked_metrics"] == list(TRACKED) else task["tracked_metrics"],
        "gates": task.get("gates", {}),
        "reference": task.get("reference", {}),
        # Without a rule, eval tests take the weighted average and tasks need all graders.
        "scoring": {} if "rule" in task.get("scoring", {}) else {"rule": "all"},
    }
    return given({KEY: {key: value for key, value in parts.items() if value}})


def _test_graders(graders: list[Any], task: Said, *, is_conversation: bool) -> dict[str, Any]:
    tells = str(task.get("criteria", "")).strip() or "expected_output" in task or "expected_messages" in task
    # A test without graders gets a judge of its criteria anyway.
    if graders == [{"type": "llm_grader"}] and tells and not is_conversation:
        return {}
    rubric: dict[str, Any] = {}
    # Reading puts a test's own `rubrics` first, so only the first grader can be written so.
    if graders and set(graders[0]) == {"type", "criteria"} and graders[0]["type"] == "rubrics":
        rubric, graders = {"rubrics": written_criteria(graders[0]["criteria"])}, graders[1:]
    return {**rubric, **({"assert": [written_grader(grader) for grader in graders]} if graders else {})}


def written_grader(grader: Said) -> dict[str, Any]:
    """One grader: its type and name first, then its own options, then what all graders have."""
    words = _WRITERS.get(grader["type"], dict)(without(grader, *_BASE, "type"))
    kind = words.pop("type", _NAMES.get(grader["type"], grader["type"]))
    name, base = only(grader, "name"), only(grader, *_BASE[1:])
    if kind is None:
        return {**words, **name, **base}
    if snake_case(kind).startswith("not_"):  # a grader that passgate does not have: its type says `negate`
        base.pop("negate", None)
    return {"type": kind, **name, **words, **base}


def written_criteria(items: Sequence[Said]) -> list[Any]:
    """The items of a rubric; one that is a text and no more is the text."""
    written: list[Any] = []
    for number, item in enumerate(items, start=1):
        # Reading gives an item this id by its place.
        if item == {"id": f"rubric-{number}", "outcome": item.get("outcome")} and item["outcome"].strip():
            written.append(item["outcome"])
            continue
        spans = item.get("score_ranges", ())
        ranges = [{"score_range": [span["low"], span["high"]], "outcome": span["outcome"]} for span in spans]
        written.append({**item, **({"score_ranges": ranges} if ranges else {})})
    return written


def _graders_at(name: str, said: Said, key: str) -> dict[str, Any]:
    return {name: [written_grader(grader) for grader in said[key]]} if key in said else {}


def _composite(own: Said) -> dict[str, Any]:
    written: dict[str, Any] = {"assertions": [written_grader(grader) for grader in own["assertions"]]}
    said = own.get("aggregator")
    if said is not None:
        kind = said.get("type", "weighted_average")
        command = {"command": written_command(said["command"])} if "command" in said else {}
        written["aggregator"] = {"type": _NAMES.get(kind, kind), **without(said, "type"), **command}
    return {**written, **without(own, "assertions", "aggregator")}


def _within(name: str, **names: str) -> Callable[[Said], dict[str, Any]]:
    """A grader of the latest AgentV, whose options are its `value`."""
    return lambda own: {"type": f"trajectory:{name}", "value": _renamed(own, **names)}


def _turns(own: Said) -> dict[str, Any]:
    turns = [{**turn, **_graders_at("assertions", turn, "assertions")} for turn in own["turns"]]
    return {**own, **_graders_at("conversation", own, "conversation"), "turns": turns}


def _renamed(said: Said, **names: str) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in said.items()}


_WRITERS: Mapping[str, Callable[[Said], dict[str, Any]]] = {
    "code_grader": lambda own: _renamed({**own, "command": written_command(own["command"])}, command="script"),
    "llm_grader": lambda own: _renamed(own, prompt_file="prompt"),
    "rubrics": lambda own: {"type": "rubric", "rubrics": written_criteria(own["criteria"]), **without(own, "criteria")},
    # A script runs in the folder of its file, which no key can say.
    **dict.fromkeys(("javascript", "python"), lambda own: without(own, "cwd")),
    "composite": _composite,
    # Every mode but one needs the key, even when nothing is expected.
    "tool_trajectory": lambda own: {"expected": [], **own} if "mode" in own else dict(own),
    "tool_used": _within("tool-used", tools="name"),
    "tool_sequence": _within("tool-sequence"),
    "tool_arguments": _within("tool-args-match", tool="name"),
    "step_count": _within("step-count", kind="type"),
    "turns": _turns,
    # A grader of another tool is written in that tool's words. An include that was not found has no type.
    "unavailable": lambda own: {"type": None if own["kind"] == "include" else own["kind"], **own.get("options", {})},
}
