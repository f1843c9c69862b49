"""What the newest runs on the baseline branch say of each task."""

import pandas as pd

from passgate.tasks.model.measurement import Baseline, BaselineTask, TaskState
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask
from passgate.tasks.stats.decision import decide

COLUMNS = (
    "run_id",
    "task_id",
    "task_digest",
    "grader_digest",
    "agent",
    "git_branch",
    "k",
    "metric",
    "status",
    "score",
    "wall_time_seconds",
    "cost",
)
"""What a baseline is read from."""


def baseline_of(plan: Plan, trials: pd.DataFrame) -> Baseline:
    """The baseline of a plan's tasks from the rows of the history.

    A row counts when it is of the baseline branch, of a run before this one, and of the same agent, task
    digest, grader digest, k and metric. Of these the newest run speaks that decided the task.
    """
    branch = plan.policy.baseline.branch
    usable = trials[
        (trials["git_branch"] == branch) & (trials["agent"] == str(plan.agent)) & (trials["run_id"] < plan.run_id)
    ]
    groups = dict(iter(usable.groupby("task_id"))) if len(usable) else {}
    found = ((task, groups.get(task.task_id)) for task in plan.tasks)
    entries = ((task, _entry(task, rows)) for task, rows in found if rows is not None)
    return Baseline(
        branch=branch,
        tasks={f"{task.suite}/{task.task_id}": entry for task, entry in entries if entry is not None},
    )


def _entry(task: EvalTask, rows: pd.DataFrame) -> BaselineTask | None:
    same = rows[
        (rows["task_digest"] == task.task_digest)
        & (rows["grader_digest"] == task.grader_digest)
        & (rows["k"] == task.k)
        & (rows["metric"] == str(task.metric))
    ]
    for run_id in sorted(same["run_id"].unique(), reverse=True):
        run = same[same["run_id"] == run_id]
        passed, failed = (int((run["status"] == status).sum()) for status in ("passed", "failed"))
        state = decide(
            task.metric,
            passed=passed,
            failed=failed,
            planned=len(run),
            scores=list(run["score"].dropna()),
            threshold=task.scoring.threshold,
        )
        if state is not TaskState.UNDECIDED:
            return BaselineTask(
                run_id=str(run_id),
                state=state,
                passed=passed,
                n=passed + failed,
                wall_times=tuple(run["wall_time_seconds"].dropna()),
                costs=tuple(run["cost"].dropna()),
            )
    return None
