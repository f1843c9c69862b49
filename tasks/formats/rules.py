"""What a schema cannot say: names must be known, paths must exist, graders must be able to fail."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from passgate.tasks.formats.assertion_rules import assertion_rules
from passgate.tasks.formats.discover import SHARED_FOLDER, suite_of
from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.environment_rules import agent_findings
from passgate.tasks.formats.findings import Finding, check_json_schema, check_path
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.formats.scoring_rules import scoring_findings, workspace_findings
from passgate.tasks.formats.task_messages import message_findings
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
from passgate.tasks.model.metrics import METRIC_GROUPS, TrialMetrics, metric_columns
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import Solution, TaskFile, TrackedMetrics

SANDBOXES = f"{SHARED_FOLDER}/sandboxes"


@dataclass(frozen=True)
class Surroundings:
    """What a task is checked against."""

    file: Path
    suites_folder: Path
    policy: Policy


def findings(task: TaskFile, around: Surroundings) -> Iterator[Finding]:
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


def _suite(task: TaskFile, around: Surroundings) -> Iterator[Finding]:
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
