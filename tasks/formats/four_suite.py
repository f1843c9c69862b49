"""The four-suite dialect: one task per YAML file."""

from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from passgate.tasks.errors import Problem
from passgate.tasks.formats.digests import FileDigests
from passgate.tasks.formats.document import Document, read_document
from passgate.tasks.formats.rules import SANDBOXES, Surroundings, findings, sandbox_names
from passgate.tasks.formats.schema_check import check_schema, schema_validator, validated
from passgate.tasks.model.metrics import METRIC_GROUPS
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import Budgets, EvalTask, GateName, GateSelection, TaskFile, TrackedMetrics


class TaskReader:
    """Reads task files of one suites folder under one policy."""

    def __init__(self, suites_folder: Path, policy: Policy, *, working_folder: Path) -> None:
        self._suites_folder = suites_folder.absolute()
        self._policy = policy
        self._working_folder = working_folder.absolute()
        self._digests = FileDigests(self._suites_folder)
        self._validator: Draft202012Validator = schema_validator("task")
        self._sandboxes: dict[str, list[Problem]] = {}

    def read(self, file: Path) -> EvalTask | list[Problem]:
        """The task of a file, or everything that is wrong with it."""
        document = read_document(file, shown_path(file, self._working_folder))
        if document.problems:
            return document.problems
        task = validated(TaskFile, document, self._validator)
        if isinstance(task, list):
            return task
        around = Surroundings(file.absolute(), self._suites_folder, self._policy)
        problems = [document.problem(path, message) for path, message in findings(task, around)]
        problems += self._sandbox_problems(task.environment.sandbox)
        return problems or self._normalised(task, document)

    def _sandbox_problems(self, name: str | None) -> list[Problem]:
        """What is wrong with the description of a sandbox; each sandbox is read once."""
        if name is None or name not in sandbox_names(self._suites_folder):
            return []
        file = self._suites_folder / SANDBOXES / name / "sandbox.yaml"
        if name not in self._sandboxes and file.is_file():
            document = read_document(file, shown_path(file, self._working_folder))
            self._sandboxes[name] = document.problems or check_schema(document, schema_validator("sandbox"))
        return self._sandboxes.get(name, [])

    def _normalised(self, task: TaskFile, document: Document) -> EvalTask:
        suite = self._policy.suites[task.suite]
        environment = task.environment
        return EvalTask(
            task_id=task.task_id,
            suite=task.suite,
            description=task.description,
            tags=task.tags,
            inputs=task.inputs,
            sandbox=environment.sandbox,
            reset=environment.reset.commands,
            network=environment.network,
            tools=environment.tools,
            replay=environment.replay,
            user=environment.user,
            budgets=environment.budgets.over(Budgets(max_steps=suite.max_steps).over(suite.budgets)),
            k=task.trials.k or suite.k,
            metric=task.trials.metric or suite.metric,
            graders=task.graders,
            tracked_metrics=_columns(task.tracked_metrics),
            gates=_gates(task.gates),
            reference=task.reference,
            file=document.file,
            line=document.keys[("task_id",)].line,
            task_digest=self._digests.task(task),
            grader_digest=self._digests.graders(task),
        )


def shown_path(file: Path, working_folder: Path) -> str:
    """A path as users know it: relative to the working folder when it lies inside."""
    absolute = file.absolute()
    return str(absolute.relative_to(working_folder) if absolute.is_relative_to(working_folder) else absolute)


def _columns(tracked: tuple[str | TrackedMetrics, ...]) -> tuple[str, ...]:
    columns: dict[str, Any] = {}
    for item in tracked:
        if isinstance(item, TrackedMetrics):
            columns |= dict.fromkeys(item.metrics or METRIC_GROUPS[item.type])
        else:
            columns |= dict.fromkeys(METRIC_GROUPS.get(item, (item,)))
    return tuple(columns)


def _gates(selection: GateSelection) -> frozenset[GateName]:
    chosen = {
        GateName.CI_MERGE: selection.ci_merge_gate,
        GateName.NIGHTLY: selection.nightly,
        GateName.RELEASE_CANDIDATE: selection.release_candidate,
    }
    return frozenset(gate for gate, takes in chosen.items() if takes)
