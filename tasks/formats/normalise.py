"""From a task as files say it to the task that the pipeline uses: the same for every dialect."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from passgate.tasks.errors import Problem
from passgate.tasks.formats.digests import FileDigests
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.policy import Policy, SuitePolicy
from passgate.tasks.model.task import Budgets, EvalTask, GateName, GateSelection, TaskFile, TrackedMetrics, UnknownPart
from passgate.tasks.model.trial import metric_columns

_AS_IN_THE_FILE = (
    *("suite", "description", "tags", "inputs", "graders", "reference", "scoring", "criteria", "expected_output"),
    *("expected_messages", "note", "metadata", "target"),
)
_AS_IN_THE_ENVIRONMENT = ("sandbox", "network", "tools", "mcp_servers", "replay", "user", "workspace")


@dataclass(frozen=True)
class Origin:
    """Where a task comes from, and what is known of it beside what its file says."""

    task_id: str  # unique among all tasks of the suites folder
    file: str
    line: int
    suite_assumed: bool = False
    cannot_run: tuple[str, ...] = ()
    unknown: tuple[UnknownPart, ...] = ()


@dataclass(frozen=True)
class Loaded:
    """What files hold: their tasks, and what there is to say of the files."""

    tasks: tuple[EvalTask, ...] = ()  # those that are right
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    cannot_run: tuple[Problem, ...] = ()  # what tasks need and passgate does not support
    files: int = 0  # files that were read
    others: tuple[Path, ...] = ()  # files of folders that are neither tasks nor evals
    outside: frozenset[str] = frozenset()  # where eval files look outside of the suites folder, relative to it


def together(read: Sequence[Loaded]) -> Loaded:
    """Return what several files hold; problems that they share are one."""
    lists = ("problems", "warnings", "cannot_run")
    return Loaded(
        tasks=tuple(task for one in read for task in one.tasks),
        files=sum(one.files for one in read),
        others=tuple(file for one in read for file in one.others),
        outside=frozenset(place for one in read for place in one.outside),
        **{name: tuple(dict.fromkeys(item for one in read for item in getattr(one, name))) for name in lists},
    )


def normalise(
    task: TaskFile, messages: Sequence[TaskMessage], origin: Origin, policy: Policy, digests: FileDigests
) -> EvalTask:
    """Return a task with the defaults of its suite; `messages` are its inputs' with what files held."""
    suite = policy.suites[task.suite]
    environment = task.environment
    return EvalTask(
        **{name: getattr(task, name) for name in _AS_IN_THE_FILE},
        **{name: getattr(environment, name) for name in _AS_IN_THE_ENVIRONMENT},
        task_id=origin.task_id,
        reset=environment.reset.commands,
        budgets=_limits(environment.budgets, suite),
        k=task.trials.k or suite.k,
        metric=task.trials.metric or suite.metric,
        tracked_metrics=_columns(task.tracked_metrics),
        gates=_gates(task.gates),
        messages=tuple(messages),
        test_id="" if task.task_id == origin.task_id else task.task_id,
        suite_assumed=origin.suite_assumed,
        cannot_run=origin.cannot_run,
        unknown=origin.unknown,
        file=origin.file,
        line=origin.line,
        task_digest=digests.task(task, messages),
        grader_digest=digests.graders(task),
    )


@cache
def _limits(budgets: Budgets, suite: SuitePolicy) -> Budgets:
    return budgets.over(Budgets(max_steps=suite.max_steps).over(suite.budgets))


@cache
def _columns(tracked: tuple[str | TrackedMetrics, ...]) -> tuple[str, ...]:
    columns: dict[str, Any] = {}
    for item in tracked:
        names = (item.metrics or (item.type,)) if isinstance(item, TrackedMetrics) else (item,)
        columns |= dict.fromkeys(column for name in names for column in metric_columns(name))
    return tuple(columns)


@cache
def _gates(selection: GateSelection) -> frozenset[GateName]:
    takes = (selection.ci_merge_gate, selection.nightly, selection.release_candidate)
    gates = (GateName.CI_MERGE, GateName.NIGHTLY, GateName.RELEASE_CANDIDATE)
    return frozenset(itertools.compress(gates, takes))
