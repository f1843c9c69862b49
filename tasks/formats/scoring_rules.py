"""What a schema cannot say of how a task is scored, and of the workspace that it brings along."""

from collections.abc import Iterator
from pathlib import Path

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.findings import Finding, check_path
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import Metric, TaskFile

_OF_SCORES = (Metric.MEAN, Metric.CONFIDENCE_INTERVAL)
_WORKSPACE: DocumentPath = ("environment", "workspace")
HOOKS = ("before_all", "before_each", "after_each", "after_all")


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
