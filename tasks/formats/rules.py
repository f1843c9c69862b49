"""What a schema cannot say of a task: names must be known, paths must exist, parts must fit together."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from passgate.tasks.formats.assertion_rules import assertion_rules
from passgate.tasks.formats.discover import SHARED_FOLDER, suite_of
from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.findings import Finding, check_json_schema, check_path, read_text
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.model.graders import (
    ArgumentRule,
    CommandCheck,
    DeterministicTests,
    FileCheck,
    Grader,
    LlmRubric,
    OutputCheck,
    PolicyCheck,
    SqliteCheck,
    StateCheck,
    StaticAnalysis,
    ToolCalls,
    TrajectoryMetrics,
)
from passgate.tasks.model.messages import ContentBlock, TaskMessage
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import Environment, Metric, Replay, Solution, TaskFile, Tool, TrackedMetrics
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import METRIC_GROUPS, TrialMetrics, metric_columns

Messages = tuple[TaskMessage, ...]
MESSAGES: TypeAdapter[Messages] = TypeAdapter(Messages)
NO_FILES = ("data:", "https://", "http://")
"""How images begin that are no file."""

_ASKED: DocumentPath = ("inputs", "messages")
_EXPECTED: DocumentPath = ("expected_messages",)
_MAX_BYTES = 32 * 1024 * 1024
_TOOLS: DocumentPath = ("environment", "tools")
_REPLAY: DocumentPath = ("environment", "replay")
_USER: DocumentPath = ("environment", "user")
_OF_SCORES = (Metric.MEAN, Metric.CONFIDENCE_INTERVAL)
_WORKSPACE: DocumentPath = ("environment", "workspace")
HOOKS = ("before_all", "before_each", "after_each", "after_all")
SANDBOXES = f"{SHARED_FOLDER}/sandboxes"


def message_findings(task: TaskFile, root: Path) -> Iterator[Finding]:
    """Everything wrong with the messages of a task, those that it asks and those that it expects."""
    asked = task.inputs.get("messages")
    if asked is not None:
        if str(task.inputs.get("prompt") or "").strip():
            yield _ASKED, "give either `prompt` or `messages`"
        try:
            yield from _file_findings(_ASKED, MESSAGES.validate_python(asked), root)
        except ValidationError as error:
            for found in error.errors():
                yield (*_ASKED, *found["loc"]), found["msg"]
    yield from _file_findings(_EXPECTED, task.expected_messages, root)


def asked_messages(task: TaskFile, root: Path) -> Messages:
    """The messages of a task's inputs with what their files hold, where nothing is wrong with them."""
    return with_texts(MESSAGES.validate_python(task.inputs.get("messages") or ()), root)


def with_texts(messages: Messages, root: Path) -> Messages:
    """Messages with what their files hold."""
    return tuple(
        message
        if isinstance(message.content, str)
        else message.model_copy(update={"content": tuple(_with_text(block, root) for block in message.content)})
        for message in messages
    )


def _with_text(block: ContentBlock, root: Path) -> ContentBlock:
    return block.model_copy(update={"text": read_text(root / block.value)}) if block.type == "file" else block


def _file_findings(path: DocumentPath, messages: Messages, root: Path) -> Iterator[Finding]:
    for index, message in enumerate(messages):
        for position, block in enumerate(message.content if isinstance(message.content, tuple) else ()):
            if names_a_file(block):
                yield from _block_findings((*path, index, "content", position, "value"), block, root)


def names_a_file(block: ContentBlock) -> bool:
    """Whether the value of a block is a path: that of an image may be its data or an address."""
    return block.type == "file" or (block.type == "image" and not str(block.value).startswith(NO_FILES))


def _block_findings(path: DocumentPath, block: ContentBlock, root: Path) -> Iterator[Finding]:
    name: Any = block.value
    if not isinstance(name, str):
        yield path, "expected a path"
        return
    problems = list(check_path(path, name, root))
    yield from problems
    if not problems and block.type == "file":
        try:
            read_text(root / name)
        except ValueError as error:
            yield path, f"{name!r} {error}"


def agent_findings(task: TaskFile, root: Path) -> Iterator[Finding]:
    """Everything wrong with what a task gives to agents that let passgate run their tools, and with its user."""
    yield from _tools(task.environment, root)
    if task.environment.replay is not None:
        yield from _replay(task.environment, task.environment.replay, root)
    yield from _user(task)
    schema = task.inputs.get("output_schema")
    if schema is not None:
        path: DocumentPath = ("inputs", "output_schema")
        yield from check_json_schema(path, schema) if isinstance(schema, dict) else [(path, "not a JSON Schema")]


def _tools(environment: Environment, root: Path) -> Iterator[Finding]:
    names: set[str] = set()
    for index, tool in enumerate(environment.tools):
        path: DocumentPath = (*_TOOLS, index)
        if tool.name in names:
            yield (*path, "name"), f"there is a tool {tool.name!r} already: give this one another name"
        names.add(tool.name)
        yield from _parameters((*path, "parameters"), tool)
        if tool.function is not None:
            yield from _function((*path, "function"), tool.function, root)


def _parameters(path: DocumentPath, tool: Tool) -> Iterator[Finding]:
    problems = list(check_json_schema(path, tool.parameters))
    yield from problems
    if not problems and tool.parameters.get("type") != "object":
        yield path, "arguments go by name: write `type: object` and describe them under `properties`"


def _function(path: DocumentPath, function: str, root: Path) -> Iterator[Finding]:
    file, _, name = function.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        yield path, f"{function!r} is not of the form FILE.py:NAME"
        return
    problems = list(check_path(path, file, root))
    yield from problems
    if problems:
        return
    try:
        known = _functions((root / file).read_bytes())
    except (OSError, ValueError, SyntaxError) as error:
        yield path, f"{file} is not a Python file that can be read: {error}"
        return
    if name not in known:
        yield path, f"{file} defines no function {name!r}{nearest(name, known)}"


def _functions(source: bytes) -> list[str]:
    body = ast.parse(source).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _replay(environment: Environment, replay: Replay, root: Path) -> Iterator[Finding]:
    path: DocumentPath = (*_REPLAY, "transcript")
    if not environment.tools:
        yield _REPLAY, "a recording answers the calls of tools: declare them under `environment.tools`"
    if environment.user is not None and environment.user.persona is not None:
        yield (*_USER, "persona"), "a recording only fits what was said then: write what the user says under `says`"
    problems = list(check_path(path, replay.transcript, root))
    yield from problems
    if not problems:
        yield from _recording(path, root / replay.transcript, environment.tools)


def _recording(path: DocumentPath, file: Path, tools: tuple[Tool, ...]) -> Iterator[Finding]:
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise ValueError(f"it is larger than {_MAX_BYTES // 1024 // 1024} MiB")
        recording = Transcript.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        yield path, f"not a recorded transcript: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        return
    except (OSError, ValueError) as error:
        yield path, f"not a recorded transcript: {error}"
        return
    names = [tool.name for tool in tools]
    for tool in dict.fromkeys(call.tool for call in recording.tool_calls if not call.refused):
        if names and tool not in names:
            yield path, f"it calls {tool!r}, which `environment.tools` does not declare{nearest(tool, names)}"


def _user(task: TaskFile) -> Iterator[Finding]:
    asks = str(task.inputs.get("prompt") or "").strip() or task.inputs.get("messages")
    if task.environment.user is not None and not asks:
        yield _USER, "a conversation begins with `inputs.prompt`: write what the user says first"


def scoring_findings(task: TaskFile, policy: Policy) -> Iterator[Finding]:
    """Everything wrong with scoring, weights and the metric of a task, whose suite the policy knows."""
    weighted = task.scoring.rule == "weighted_average"
    if weighted and task.scoring.threshold == 0:
        yield ("scoring", "threshold"), "with a threshold of 0 nothing can fail"
    if weighted and not any(grader.weight for grader in task.graders):
        yield ("graders",), "no grader has a weight: there is no score"
    for index, grader in enumerate(task.graders):
        if grader.weight != 1 and not weighted:
            yield (
                ("graders", index, "weight"),
                "all graders must pass: a weight needs `scoring: {rule: weighted_average}`",
            )
    suite = policy.suites[task.suite]
    metric = task.trials.metric or suite.metric
    if metric in _OF_SCORES and not weighted:
        yield ("trials", "metric"), f"{metric!s} is of scores: it needs `scoring: {{rule: weighted_average}}`"
    if metric is Metric.CONFIDENCE_INTERVAL and (task.trials.k or suite.k) < 2:
        yield ("trials", "k"), "a confidence interval needs 2 trials or more"


def workspace_findings(task: TaskFile, root: Path) -> Iterator[Finding]:
    """Everything wrong with the template, the repositories and the hooks of a task."""
    workspace = task.environment.workspace
    if workspace is None:
        return
    if task.environment.sandbox is not None:
        yield _WORKSPACE, "give either `sandbox` or `workspace`"
    if workspace.template is not None:
        yield from check_path((*_WORKSPACE, "template"), workspace.template, root)
    for index, repository in enumerate(workspace.repos):
        path: DocumentPath = (*_WORKSPACE, "repos", index)
        if repository.path.startswith("/") or ".." in Path(repository.path).parts:
            yield (*path, "path"), f"{repository.path!r} is outside the workspace"
        if repository.repo.startswith((".", "/")):
            yield from check_path((*path, "repo"), repository.repo, root)
    for name in HOOKS:
        hook = getattr(workspace, name)
        if hook is not None:
            yield from check_path((*_WORKSPACE, name, "cwd"), hook.cwd, root)


@dataclass(frozen=True)
class RuleContext:
    """What a task is checked against."""

    file: Path
    suites_folder: Path
    policy: Policy


def findings(task: TaskFile, around: RuleContext) -> Iterator[Finding]:
    """Everything wrong with a task whose shape is right."""
    yield from _suite(task, around)
    yield from _sandbox(task, around.suites_folder)
    yield from agent_findings(task, around.suites_folder)
    yield from message_findings(task, around.suites_folder)
    yield from workspace_findings(task, around.suites_folder)
    if task.suite in around.policy.suites:
        yield from scoring_findings(task, around.policy)
    yield from _tracked_metrics(task)
    for index, grader in enumerate(task.graders):
        for path, message in grader_findings(grader, around.suites_folder):
            yield ("graders", index, *path), message
    yield from _reference(task, around.suites_folder)


def own_findings(task: TaskFile, root: Path) -> Iterator[Finding]:
    """What of that is about the parts of a task that no other dialect has: sandbox, tools, metrics, reference."""
    yield from _sandbox(task, root)
    yield from agent_findings(task, root)
    yield from _tracked_metrics(task)
    yield from _reference(task, root)


def _suite(task: TaskFile, around: RuleContext) -> Iterator[Finding]:
    folder = suite_of(around.file)
    if folder is not None and folder != task.suite:
        yield ("suite",), f"the file lies in the folder of {folder!s}; move it or write `suite: {folder!s}`"
    yield from policy_findings(task, around.policy)


def policy_findings(task: TaskFile, policy: Policy) -> Iterator[Finding]:
    """What the policy does not have, or does not allow, of what a task asks for."""
    if task.suite not in policy.suites:
        yield ("suite",), f"the gates file says nothing of the suite {task.suite!s} under `suites:`"
        return
    cap, asked = policy.suites[task.suite].max_steps, task.environment.budgets.max_steps
    if asked is not None and asked > cap:
        yield (
            ("environment", "budgets", "max_steps"),
            f"{asked} steps are more than the limit of {cap} of the suite {task.suite!s}",
        )


def _sandbox(task: TaskFile, root: Path) -> Iterator[Finding]:
    name = task.environment.sandbox
    if name is None:
        return
    known = sandbox_names(root)
    if name not in known:
        yield ("environment", "sandbox"), f"no folder {SANDBOXES}/{name}{nearest(name, known)}"


def sandbox_names(suites_folder: Path) -> list[str]:
    """The named sandboxes of a suites folder."""
    folder = suites_folder / SANDBOXES
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []


def _tracked_metrics(task: TaskFile) -> Iterator[Finding]:
    for index, item in enumerate(task.tracked_metrics):
        path: DocumentPath = ("tracked_metrics", index)
        if not isinstance(item, TrackedMetrics):
            yield from _metric(path, item)
        elif item.metrics:
            for position, metric in enumerate(item.metrics):
                yield from _metric((*path, "metrics", position), metric)
        else:
            yield from _metric((*path, "type"), item.type)


def _metric(path: DocumentPath, name: str) -> Iterator[Finding]:
    if not metric_columns(name):
        known = [*METRIC_GROUPS, *TrialMetrics.model_fields]
        yield path, f"{name!r} is no metric and no group{nearest(name, known)}"


def _reference(task: TaskFile, root: Path) -> Iterator[Finding]:
    if task.reference is None:
        return
    yield from _solution(task.reference.solution, ("reference", "solution"), root)
    for index, counterexample in enumerate(task.reference.counterexamples):
        yield from _solution(counterexample, ("reference", "counterexamples", index), root)


def _solution(solution: Solution, path: DocumentPath, root: Path) -> Iterator[Finding]:
    names = {key: getattr(solution, key) for key in ("patch", "script", "transcript")}
    if not any(names.values()):
        yield path, "needs at least one of: patch, script, transcript"
    for key, name in names.items():
        if name is not None:
            yield from check_path((*path, key), name, root)


def _pattern(path: DocumentPath, pattern: str | None) -> Iterator[Finding]:
    if pattern is None:
        return
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        yield path, f"not a regular expression: {error}"


def grader_findings(grader: Grader, root: Path) -> Iterator[Finding]:
    """Everything wrong with a grader whose shape is right, with paths inside of the grader."""
    check: Callable[[object, Path], Iterator[Finding]] | None = _GRADER_RULES.get(type(grader))
    if check is not None:
        yield from check(grader, root)


def _needs_one(grader: object, keys: tuple[str, ...]) -> Iterator[Finding]:
    if not any(getattr(grader, key) not in (None, (), {}, False) for key in keys):
        yield (), f"this grader cannot fail: give at least one of {', '.join(keys)}"


def _deterministic_tests(grader: DeterministicTests, root: Path) -> Iterator[Finding]:
    for index, name in enumerate(grader.tests):
        yield from check_path(("tests", index), name, root)


def _static_analysis(grader: StaticAnalysis, root: Path) -> Iterator[Finding]:
    for tool, name in grader.configuration.items():
        yield from check_path(("configuration", tool), name, root)


def _state_check(grader: StateCheck, root: Path) -> Iterator[Finding]:
    for index, check in enumerate(grader.expect):
        path: DocumentPath = ("expect", index)
        if isinstance(check, FileCheck):
            yield from _pattern((*path, "matches"), check.matches)
            yield from _inside((*path, "file"), check.file)
        elif isinstance(check, SqliteCheck):
            yield from _inside((*path, "sqlite"), check.sqlite)
            if not check.model_fields_set & {"rows", "value", "min_rows", "max_rows"}:
                yield path, "this check cannot fail: give at least one of rows, value, min_rows, max_rows"
        elif isinstance(check, CommandCheck):
            yield from _pattern((*path, "stdout_matches"), check.stdout_matches)
        else:
            yield from _inside((*path, "json_file"), check.json_file)
            if not check.model_fields_set & {"equals", "one_of", "absent"}:
                yield path, "this check cannot fail: give at least one of equals, one_of, absent"


def _inside(path: DocumentPath, name: str) -> Iterator[Finding]:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        yield path, f"{name!r} is outside the workspace"


def _tool_calls(grader: ToolCalls, root: Path) -> Iterator[Finding]:
    yield from _needs_one(grader, ("required", "forbidden"))


def _trajectory_metrics(grader: TrajectoryMetrics, root: Path) -> Iterator[Finding]:
    limits = sorted(set(TrajectoryMetrics.model_fields) - {"type", "name", "weight"})
    if all(getattr(grader, limit) is None for limit in limits):
        yield (), f"this grader cannot fail: give at least one of {', '.join(limits)}"


def _policy_check(grader: PolicyCheck, root: Path) -> Iterator[Finding]:
    yield from _needs_one(grader, ("deny_tools", "deny_output", "arguments", "secrets", "canaries"))
    for index, pattern in enumerate(grader.deny_output):
        yield from _pattern(("deny_output", index), pattern)
    for index, rule in enumerate(grader.arguments):
        yield from _argument_rule(rule, index)


def _argument_rule(rule: ArgumentRule, index: int) -> Iterator[Finding]:
    if not rule.allow and not rule.deny:
        yield ("arguments", index), "this rule cannot fail: give allow or deny"


def _output_check(grader: OutputCheck, root: Path) -> Iterator[Finding]:
    keys = ("equals", "contains", "not_contains", "matches", "json_schema")
    if all(getattr(grader, key) in (None, ()) for key in keys):
        yield (), f"this grader cannot fail: give at least one of {', '.join(keys)}"
    yield from _pattern(("matches",), grader.matches)
    if grader.json_schema is not None:
        yield from check_json_schema(("json_schema",), grader.json_schema)


def _llm_rubric(grader: LlmRubric, root: Path) -> Iterator[Finding]:
    if grader.rubric.endswith((".md", ".txt")):
        yield from check_path(("rubric",), grader.rubric, root)


_GRADER_RULES: dict[type, Callable[..., Iterator[Finding]]] = {
    DeterministicTests: _deterministic_tests,
    StaticAnalysis: _static_analysis,
    StateCheck: _state_check,
    ToolCalls: _tool_calls,
    TrajectoryMetrics: _trajectory_metrics,
    PolicyCheck: _policy_check,
    OutputCheck: _output_check,
    LlmRubric: _llm_rubric,
    **assertion_rules(grader_findings),
}
