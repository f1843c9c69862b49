"""Publish a verdict as artifacts in Prefect: a Markdown report, tables of suites and tasks, a link to the page."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from prefect.artifacts import acreate_link_artifact, acreate_markdown_artifact, acreate_table_artifact

from passgate.flows.display.report_retries import retry
from passgate.flows.display.states import run_place
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import RunView, Verdict
from passgate.tasks.reports import escape, figures
from passgate.tasks.reports.markdown import markdown

PAGE = "report.html"
_MOST_TASKS = 1000  # Rows of the table: Prefect's interface draws all of them
_WHY = 300


def artifact_key(gate: GateName, what: str = "") -> str:
    """Return the key of an artifact. Prefect allows lower-case letters, digits and dashes."""
    return f"gate-{gate}{what and f'-{what}'}".replace("_", "-")


async def publish_artifacts(verdict: Verdict, masker: Masker) -> None:
    """Publish a verdict as artifacts of the current flow run. Try each of them until Prefect accepts it."""
    gate, tasks = verdict.gate, verdict.measurement.tasks
    report = f"Run {escape.markdown(run_place(verdict.run_id), 1000)}\n\n{markdown(RunView(verdict))}"
    rows = [_task(task, masker) for task in sorted(tasks, key=_worst_first)]
    left_out = f", {len(rows) - _MOST_TASKS} tasks left out" if len(rows) > _MOST_TASKS else ""
    about = f"{verdict.run_id}{left_out}"
    create: list[Callable[[], Awaitable[object]]] = [
        partial(acreate_markdown_artifact, masker.text(report), artifact_key(gate)),
        partial(acreate_table_artifact, _suites(verdict), artifact_key(gate, "suites"), verdict.run_id),
        partial(acreate_table_artifact, rows[:_MOST_TASKS], artifact_key(gate, "tasks"), about),
    ]
    page = _page_url(verdict.run_id)
    if page is not None:
        create.append(partial(acreate_link_artifact, page, verdict.run_id, artifact_key(gate, "page")))
    for one in create:
        await retry(one)


def _page_url(run_id: str) -> str | None:
    """Return the URL of the run's page, or `None` if there is none."""
    location = RunStore.of(run_id).location
    if "://" in location:
        return f"{location}/{PAGE}"
    file = Path(location, PAGE)
    return file.as_uri() if file.exists() else None


def _suites(verdict: Verdict) -> list[dict[str, Any]]:
    return [
        {
            "suite": str(suite.suite),
            "tasks": f"{suite.tasks_passed}/{suite.tasks}",
            "trials": f"{suite.trials_passed}/{suite.trials_measured}",
            "errors": suite.trials_error,
            "metric": figures.metric_name(suite.metric, suite.k),
            "value": suite.value,
            "interval": [suite.interval.low, suite.interval.high] if suite.interval else None,
            "cost": suite.cost,
        }
        for suite in verdict.measurement.suites
    ]


def _worst_first(task: TaskMeasurement) -> tuple[bool, float]:
    return not task.violations, task.passed / task.n if task.n else 0.5


def _task(task: TaskMeasurement, masker: Masker) -> dict[str, Any]:
    return {
        "task": task.name,
        "state": str(task.state),
        "trials": f"{task.passed}/{task.n}",
        "errors": task.errors,
        "metric": figures.metric_name(task.metric, task.k),
        "value": task.value,
        "cost": sum(task.costs) if task.costs else None,
        "seconds": task.metrics.wall_time_seconds,
        "why": masker.text(escape.printable(task.failure or task.error, _WHY)),
    }
