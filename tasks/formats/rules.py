"""What a schema cannot say of a task: names must be known, paths must exist, parts must fit together."""

import ast
import difflib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.findings import (
    Finding,
    check_contents,
    check_json_schema,
    check_path,
    check_text,
    contents_left_out,
    read_text,
)
from passgate.tasks.formats.folder import find_suite
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.model import assertions, graders
from passgate.tasks.model.graders import AGGREGATOR_NEEDS, Grader
from passgate.tasks.model.messages import ContentBlock, TaskMessage
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.sandbox import SANDBOXES
from passgate.tasks.model.task import Environment, Hooks, Metric, Solution, TaskFile, TrackedMetrics, Workspace
from passgate.tasks.model.transcript import Transcript, is_same_tool
from passgate.tasks.model.trial import METRIC_GROUPS, TrialMetrics, metric_columns

Messages = tuple[TaskMessage, ...]
MESSAGES: TypeAdapter[Messages] = TypeAdapter(Messages)
NO_FILES = ("data:", "https://", "http://")  # how images begin that are not files

HOOKS = ("before_all", "before_each", "after_each", "after_all")
_ASKS = ("prompt", "messages")
_OWN_KEYS = frozenset({"message"})  # A task's own data may well be called so
_MAX_RECORDING_BYTES = 32 * 1024 * 1024
_OF_SCORES = (Metric.MEAN, Metric.CONFIDENCE_INTERVAL)


def findings(task: TaskFile, file: Path, root: Path, policy: Policy) -> Iterator[Finding]:
    """Yield everything wrong with a task of a file whose shape is right. `root` is the suites folder."""
    folder = find_suite(file)
    if folder is not None and folder != task.suite:
        yield ("suite",), f"the file lies in the folder of {folder!s}; move it or write `suite: {folder!s}`"
    yield from policy_findings(task, policy)
    yield from _sandbox(task, root)
    yield from _agent_findings(task, root)
    # Other keys of the inputs are the task's own, and only a task that asks nothing can have misspelt what it asks.
    for key in task.inputs if task.inputs.keys().isdisjoint(_ASKS) else ():
        if key not in _OWN_KEYS and (close := difflib.get_close_matches(key.lower(), _ASKS, n=1, cutoff=0.75)):
            yield ("inputs", key), f"the task asks nothing; did you mean {close[0]!r}?"
    yield from _message_findings(task, root)
    yield from _workspace_findings(task, root)
    if task.suite in policy.suites:
        yield from _scoring_findings(task, policy)
    yield from _tracked_metrics(task)
    for index, grader in enumerate(task.graders):
        for path, message in grader_findings(grader, root):
            yield ("graders", index, *path), message
    yield from _reference(task, root)


def own_findings(task: TaskFile, root: Path) -> Iterator[Finding]:
    """Yield what of that is about the parts of a task that no other dialect has: sandbox, tools, metrics, reference."""
    yield from _sandbox(task, root)
    yield from _agent_findings(task, root)
    yield from _tracked_metrics(task)
    yield from _reference(task, root)


def policy_findings(task: TaskFile, policy: Policy) -> Iterator[Finding]:
    """Yield what the policy does not have, or does not allow, of what a task asks for."""
    if task.suite not in policy.suites:
        yield ("suite",), f"the gates file says nothing of the suite {task.suite!s} under `suites:`"
        return
    cap, asked = policy.suites[task.suite].max_steps, task.environment.budgets.max_steps
    if asked is not None and asked > cap:
        message = f"{asked} steps are more than the limit of {cap} of the suite {task.suite!s}"
        yield ("environment", "budgets", "max_steps"), message


def asked_messages(task: TaskFile, root: Path) -> Messages:
    """Return the messages of a task's inputs with what their files hold, where nothing is wrong with them."""
    return fill_texts(MESSAGES.validate_python(task.inputs.get("messages") or ()), root)


def fill_texts(messages: Messages, root: Path) -> Messages:
    """Return messages with what their files hold."""

    def read(block: ContentBlock) -> ContentBlock:
        return block.model_copy(update={"text": read_text(root / block.value)}) if block.type == "file" else block

    filled = []
    for message in messages:
        content = message.content if isinstance(message.content, str) else tuple(map(read, message.content))
        filled.append(message.model_copy(update={"content": content}))
    return tuple(filled)


def names_a_file(block: ContentBlock) -> bool:
    """Return whether the value of a block is a path: that of an image may be its data or an address."""
    return block.type == "file" or (block.type == "image" and not str(block.value).startswith(NO_FILES))


def sandbox_names(suites_folder: Path) -> list[str]:
    """Return the named sandboxes of a suites folder."""
    folder = suites_folder / SANDBOXES
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []


def _sandbox(task: TaskFile, root: Path) -> Iterator[Finding]:
    name = task.environment.sandbox
    if name is not None and name not in (known := sandbox_names(root)):
        yield ("environment", "sandbox"), f"no folder {SANDBOXES}/{name}{nearest(name, known)}"
    elif name is not None:
        # Without any file it may be meant so.
        has_files = any(file[0] != "." for _, _, files in os.walk(root / SANDBOXES / name) for file in files)
        yield from contents_left_out(("environment", "sandbox"), f"{SANDBOXES}/{name}", root, is_filled=has_files)


def _message_findings(task: TaskFile, root: Path) -> Iterator[Finding]:
    path: DocumentPath = ("inputs", "messages")
    asked = task.inputs.get("messages")
    listed: dict[DocumentPath, Messages] = {("expected_messages",): task.expected_messages}
    if asked is not None:
        if str(task.inputs.get("prompt") or "").strip():
            yield path, "give either `prompt` or `messages`"
        try:
            listed = {path: MESSAGES.validate_python(asked), **listed}
        except ValidationError as error:
            for found in error.errors():
                yield (*path, *found["loc"]), found["msg"]
    for outer, messages in listed.items():
        for index, message in enumerate(messages):
            for position, block in enumerate(message.content if isinstance(message.content, tuple) else ()):
                inner: DocumentPath = (*outer, index, "content", position, "value")
                if names_a_file(block) and not isinstance(block.value, str):
                    yield inner, "expected a path"
                elif names_a_file(block):
                    yield from (check_text if block.type == "file" else check_contents)(inner, block.value, root)


def _agent_findings(task: TaskFile, root: Path) -> Iterator[Finding]:
    """Yield everything wrong with what a task gives to agents that let passgate run their tools, and with its user."""
    names: set[str] = set()
    for index, tool in enumerate(task.environment.tools):
        path: DocumentPath = ("environment", "tools", index)
        if tool.name in names:
            yield (*path, "name"), f"there is a tool {tool.name!r} already: give this one another name"
        names.add(tool.name)
        problems = list(check_json_schema((*path, "parameters"), tool.parameters))
        yield from problems
        if not problems and tool.parameters.get("type") != "object":
            message = "arguments go by name: write `type: object` and describe them under `properties`"
            yield (*path, "parameters"), message
        if tool.function is not None:
            yield from _function((*path, "function"), tool.function, root)
    yield from _replay(task.environment, root)
    asks = str(task.inputs.get("prompt") or "").strip() or task.inputs.get("messages")
    if task.environment.user is not None and not asks:
        yield ("environment", "user"), "a conversation begins with `inputs.prompt`: write what the user says first"
    schema, path = task.inputs.get("output_schema"), ("inputs", "output_schema")
    if schema is not None:
        yield from check_json_schema(path, schema) if isinstance(schema, dict) else [(path, "not a JSON Schema")]


def _function(path: DocumentPath, function: str, root: Path) -> Iterator[Finding]:
    file, _, name = function.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        yield path, f"{function!r} is not of the form FILE.py:NAME"
        return
    problems = list(check_path(path, file, root))
    yield from problems
    try:
        known = _function_names((root / file).read_bytes()) if not problems else (name,)
    except (OSError, ValueError, SyntaxError) as error:
        yield path, f"{file} is not a Python file that can be read: {error}"
        return
    if name not in known:
        yield path, f"{file} defines no function {name!r}{nearest(name, known)}"


# Many tasks have their tools in one file.
@lru_cache(maxsize=64)
def _function_names(source: bytes) -> tuple[str, ...]:
    body = ast.parse(source).body
    return tuple(node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _replay(environment: Environment, root: Path) -> Iterator[Finding]:
    replay, user = environment.replay, environment.user
    if replay is None:
        return
    path: DocumentPath = ("environment", "replay", "transcript")
    if not environment.tools:
        yield path[:2], "a recording answers the calls of tools: declare them under `environment.tools`"
    if user is not None and user.persona is not None:
        message = "a recording only fits what was said then: write what the user says under `says`"
        yield ("environment", "user", "persona"), message
    problems = list(check_contents(path, replay.transcript, root))
    yield from problems
    if not problems:
        names = [tool.name for tool in environment.tools]
        yield from ((path, message) for message in _recording(root / replay.transcript, names))


def _recording(file: Path, tools: list[str]) -> Iterator[str]:
    try:
        if file.stat().st_size > _MAX_RECORDING_BYTES:
            raise ValueError(f"it is larger than {_MAX_RECORDING_BYTES // 1024 // 1024} MiB")
        recording = Transcript.model_validate_json(file.read_text("utf-8-sig"))
    except ValidationError as error:
        first = error.errors()[0]
        yield f"not a recorded transcript: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        return
    except (OSError, ValueError) as error:
        yield f"not a recorded transcript: {error}"
        return
    # What was refused then has no result that could be served now.
    for tool in dict.fromkeys(call.tool for call in recording.tool_calls if not call.refused):
        if tools and not any(is_same_tool(name, tool) for name in tools):
            yield f"it calls {tool!r}, which `environment.tools` does not declare{nearest(tool, tools)}"


def _scoring_findings(task: TaskFile, policy: Policy) -> Iterator[Finding]:
    weighted = task.scoring.rule == "weighted_average"
    if weighted and task.scoring.threshold == 0:
        yield ("scoring", "threshold"), "with a threshold of 0 nothing can fail"
    if weighted and not any(grader.weight for grader in task.graders):
        yield ("graders",), "no grader has a weight: there is no score"
    for index, grader in enumerate(task.graders):
        if grader.weight != 1 and not weighted:
            message = "all graders must pass: a weight needs `scoring: {rule: weighted_average}`"
            yield ("graders", index, "weight"), message
    suite = policy.suites[task.suite]
    metric = task.trials.metric or suite.metric
    if metric in _OF_SCORES and not weighted:
        yield ("trials", "metric"), f"{metric!s} is of scores: it needs `scoring: {{rule: weighted_average}}`"
    if metric is Metric.CONFIDENCE_INTERVAL and (task.trials.k or suite.k) < 2:
        yield ("trials", "k"), "a confidence interval needs 2 trials or more"


def _workspace_findings(task: TaskFile, root: Path) -> Iterator[Finding]:
    workspace, path = task.environment.workspace, ("environment", "workspace")
    if workspace is None:
        return
    if task.environment.sandbox is not None:
        yield path, "give either `sandbox` or `workspace`"
    if workspace.template is not None:
        yield from check_contents((*path, "template"), workspace.template, root)
    for index, repository in enumerate(workspace.repos):
        if repository.path.startswith("/") or ".." in Path(repository.path).parts:
            yield (*path, "repos", index, "path"), f"{repository.path!r} is outside the workspace"
        if repository.repo.startswith((".", "/")):  # no URL and no `owner/name`
            yield from check_path((*path, "repos", index, "repo"), repository.repo, root)
    for inner, name in _paths_around_trials(workspace).items():
        yield from check_path((*path, *inner), name, root)


def _paths_around_trials(workspace: Workspace) -> dict[DocumentPath, str]:
    paths: dict[DocumentPath, str] = {}
    places: list[tuple[DocumentPath, Hooks]] = [((), workspace)]
    places += [(("target_hooks", index), hooks) for index, hooks in enumerate(workspace.target_hooks)]
    for where, hooks in places:
        paths |= {(*where, name, "cwd"): hook.cwd for name in HOOKS if (hook := getattr(hooks, name)) is not None}
    for number, extension in enumerate(workspace.extensions):
        if extension.module is not None:
            paths["extensions", number, "module"] = extension.module
        for kind, names in extension.agent_rules or ():
            paths |= {("extensions", number, "agent_rules", kind, index): name for index, name in enumerate(names)}
    return paths


def _tracked_metrics(task: TaskFile) -> Iterator[Finding]:
    for index, item in enumerate(task.tracked_metrics):
        path: DocumentPath = ("tracked_metrics", index)
        if not isinstance(item, TrackedMetrics):
            names = {path: item}
        elif item.metrics:
            names = {(*path, "metrics", position): metric for position, metric in enumerate(item.metrics)}
        else:
            names = {(*path, "type"): item.type}
        for place, name in names.items():
            if not metric_columns(name):
                known = [*METRIC_GROUPS, *TrialMetrics.model_fields]
                yield place, f"{name!r} is neither a metric nor a group{nearest(name, known)}"


def _reference(task: TaskFile, root: Path) -> Iterator[Finding]:
    if task.reference is None:
        return
    solutions: dict[DocumentPath, Solution] = {("reference", "solution"): task.reference.solution}
    for index, counterexample in enumerate(task.reference.counterexamples):
        solutions["reference", "counterexamples", index] = counterexample
    for path, solution in solutions.items():
        names = {key: getattr(solution, key) for key in ("patch", "script", "transcript")}
        if not any(names.values()):
            yield path, "needs at least one of: patch, script, transcript"
        for key, name in names.items():
            if name is not None:
                yield from check_contents((*path, key), name, root, is_filled=key == "transcript")


_CHECK_PATH: Mapping[str, Callable[[DocumentPath, str, Path], Iterator[Finding]]] = {
    "folder": check_path,
    "file": check_contents,
    "tests": partial(check_contents, is_filled=True),
    "prompt": check_text,
}


def option_findings(grader: Grader) -> Iterator[Finding]:
    """Yield what is wrong with the options of a grader, with paths inside of it, but for the files that they name."""
    yield from grader.problems()
    for path, schema in grader.json_schemas():
        yield from check_json_schema(path, schema)
    if isinstance(grader, graders.Composite):
        yield from _aggregator_findings(grader.aggregator, grader.assertions)


def grader_findings(grader: Grader, root: Path) -> Iterator[Finding]:
    """Yield everything wrong with a grader whose shape is right, with paths inside of the grader."""
    yield from option_findings(grader)
    for path, name, kind in grader.named_paths():
        problems = list(_CHECK_PATH[kind](path, name, root))
        yield from problems
        prompt = grader.prompt if isinstance(grader, assertions.LlmGrader) else ""
        if prompt and not problems and prompt != read_text(root / name):
            yield path, "the file says something else than `prompt`: give only one of them"
    for path, member in grader.members():
        yield from (((*path, *inner), message) for inner, message in grader_findings(member, root))


def _aggregator_findings(aggregator: graders.Aggregator, members: tuple[Grader, ...]) -> Iterator[Finding]:
    needed = AGGREGATOR_NEEDS.get(aggregator.type)
    if needed is not None and getattr(aggregator, needed) in (None, (), ""):
        yield ("aggregator",), f"the key {needed!r} is missing"
    is_guarded = aggregator.required or any(getattr(member, "required", None) is True for member in members)
    if aggregator.type == "safety_gate" and not is_guarded:
        yield ("aggregator",), "this gate guards nothing: name its members under `required`"
    names = Counter(member.name for member in members if member.name is not None)
    places: list[tuple[DocumentPath, str]] = [(("required", at), name) for at, name in enumerate(aggregator.required)]
    places += [(("weights", name), name) for name in aggregator.weights]
    for place, name in places:
        if names[name] != 1:
            what = f"the name of {names[name]} members" if names[name] else "the name of no member"
            yield ("aggregator", *place), f"{name!r} is {what}{nearest(name, list(names)) if not names[name] else ''}"
