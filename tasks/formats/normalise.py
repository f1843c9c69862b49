"""From a task as files say it to the task that the pipeline uses: the same for every dialect."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from passgate.tasks.formats.digests import FileDigests
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.policy import Policy, SuitePolicy
from passgate.tasks.model.task import Budgets, EvalTask, GateName, GateSelection, TaskFile, TrackedMetrics, UnknownPart
from passgate.tasks.model.trial import metric_columns


@dataclass(frozen=True)
class Origin:
    """Where a task comes from, and what is known of it beside what its file says."""

    task_id: str
    """Unique among all tasks of the suites folder."""
    file: str
    line: int
    suite_assumed: bool = False
    cannot_run: tuple[str, ...] = ()
    unknown: tuple[UnknownPart, ...] = ()


def normalised(
    task: TaskFile, messages: Sequence[TaskMessage], origin: Origin, policy: Policy, digests: FileDigests
) -> EvalTask:
    """A task with the defaults of its suite, every name resolved. `messages` are its inputs' with what files held."""
    suite = policy.suites[task.suite]
    environment = task.environment
    k, metric = task.trials.k or suite.k, task.trials.metric or suite.metric
    return EvalTask(
        task_id=origin.task_id,
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
        budgets=_limits(environment.budgets, suite),
        k=k,
        metric=metric,
        sequential=suite.sequential_for(k, metric),
        graders=task.graders,
        tracked_metrics=_columns(task.tracked_metrics),
        gates=_gates(task.gates),
        reference=task.reference,
        scoring=task.scoring,
        workspace=environment.workspace,
        messages=tuple(messages),
        criteria=task.criteria,
        expected_output=task.expected_output,
        expected_messages=task.expected_messages,
        note=task.note,
        metadata=task.metadata,
        target=task.target,
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
    chosen = {
        GateName.CI_MERGE: selection.ci_merge_gate,
        GateName.NIGHTLY: selection.nightly,
        GateName.RELEASE_CANDIDATE: selection.release_candidate,
    }
    return frozenset(gate for gate, takes in chosen.items() if takes)
