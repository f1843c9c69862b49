"""What Prefect shows of a run: its progress and its verdict as artifacts, and the events that automations wait for."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.artifacts import (
    acreate_link_artifact,
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.events import emit_event

from passgate.flows.cli.progress import JournalFollower
from passgate.flows.states import run_place, verdict_lines
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import AlarmKind, Decision, RunView, Verdict
from passgate.tasks.reports import escape, figures
from passgate.tasks.reports.markdown import markdown
from passgate.tasks.reports.page import PAGE

VERDICT, SIGN_OFF_PENDING, DRIFT = "passgate.verdict", "passgate.sign-off-pending", "passgate.drift"
_MOST_TASKS = 1000  # Rows of the table: Prefect's interface draws all of them
_LONGEST_REASON, _LONGEST_LABEL = 300, 500
_PAUSE = 1.0  # Before Prefect is asked again
_SECONDS_OF_PROGRESS = 5.0  # Between two looks at the journal
_SECONDS_TO_END = 5.0


@asynccontextmanager
async def progress_artifact(plan: Plan) -> AsyncIterator[None]:
    """Show how many trials of a plan have ended while the context lasts, as far as Prefect lets."""
    totals = sum((Counter({str(task.suite): task.k}) for task in plan.tasks), Counter[str]())
    follower, key = JournalFollower(RunStore.of(plan.run_id)), _artifact_key(plan.gate, "progress")
    artifact: UUID | None = None
    shown = ""

    async def update() -> None:
        nonlocal artifact, shown
        # A long journal can take seconds to read.
        counts = await asyncio.to_thread(follower.counts)
        done = {suite: min(counts.get(suite, Counter()).total(), total) for suite, total in totals.items()}
        text = "; ".join(f"{suite}: {done[suite]}/{total} trials" for suite, total in totals.items())
        percent = 100 * sum(done.values()) / max(1, totals.total())
        if artifact is None:
            artifact = await acreate_progress_artifact(percent, key, text)
        elif text != shown:
            await aupdate_progress_artifact(artifact, percent, text)
        shown = text

    async def show() -> None:
        while True:
            # The next look shows what this one could not.
            with suppress(Exception):
                await update()
            await asyncio.sleep(_SECONDS_OF_PROGRESS)

    showing = asyncio.create_task(show())
    try:
        yield
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
        with suppress(Exception):
            await asyncio.wait_for(update(), _SECONDS_TO_END)


async def publish_artifacts(verdict: Verdict, masker: Masker) -> None:
    """Publish a verdict as artifacts, each call until Prefect accepts it: use it within `asyncio.timeout`."""
    gate, tasks = verdict.gate, verdict.measurement.tasks
    report = f"Run {escape.markdown(run_place(verdict.run_id), 1000)}\n\n{markdown(RunView(verdict))}"
    worst_first = sorted(tasks, key=lambda one: (not one.violations, one.passed / one.n if one.n else 0.5))
    rows = [_task_row(task, masker) for task in worst_first]
    left_out = f", {len(rows) - _MOST_TASKS} tasks left out" if len(rows) > _MOST_TASKS else ""
    about = f"{verdict.run_id}{left_out}"
    create: list[Callable[[], Awaitable[object]]] = [
        partial(acreate_markdown_artifact, masker.text(report), _artifact_key(gate)),
        partial(acreate_table_artifact, _suite_rows(verdict), _artifact_key(gate, "suites"), verdict.run_id),
        partial(acreate_table_artifact, rows[:_MOST_TASKS], _artifact_key(gate, "tasks"), about),
    ]
    if (page := _page_url(verdict.run_id)) is not None:
        create.append(partial(acreate_link_artifact, page, verdict.run_id, _artifact_key(gate, "page")))
    for call in create:
        while True:
            try:
                await call()
                break
            except Exception:  # noqa: BLE001 - whatever it is, the caller's limit ends it
                await asyncio.sleep(_PAUSE)


def _artifact_key(gate: GateName, what: str = "") -> str:
    """Return the key of an artifact. Prefect allows lower-case letters, digits and dashes."""
    return f"gate-{gate}{what and f'-{what}'}".replace("_", "-")


def _page_url(run_id: str) -> str | None:
    """Return the URL of the run's page, or `None` if there is none."""
    location = RunStore.of(run_id).location
    if "://" in location:
        return f"{location}/{PAGE}"
    file = Path(location, PAGE)
    return file.as_uri() if file.exists() else None


def _suite_rows(verdict: Verdict) -> list[dict[str, Any]]:
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


def _task_row(task: TaskMeasurement, masker: Masker) -> dict[str, Any]:
    return {
        "task": task.name,
        "state": str(task.state),
        "trials": f"{task.passed}/{task.n}",
        "errors": task.errors,
        "metric": figures.metric_name(task.metric, task.k),
        "value": task.value,
        "cost": sum(task.costs) if task.costs else None,
        "seconds": task.metrics.wall_time_seconds,
        "why": masker.text(escape.printable(task.failure or task.error, _LONGEST_REASON)),
    }


def emit_verdict(verdict: Verdict, masker: Masker) -> None:
    """Emit the verdict of a run, and events for a pending sign-off and for drift alarms. Their resource is the run."""
    agent = {"passgate.agent": verdict.agent[:_LONGEST_LABEL]}
    labels, lines = verdict_labels(verdict) | agent, verdict_lines(verdict)
    drifts = [alarm.message for alarm in verdict.alarms if alarm.kind is AlarmKind.DRIFT]
    _emit(VERDICT, verdict, labels, [masker.text(line) for line in lines])
    if verdict.awaiting_sign_off:
        _emit(SIGN_OFF_PENDING, verdict, labels, [masker.text(line) for line in lines])
    if drifts:
        _emit(DRIFT, verdict, agent, [masker.text(message) for message in drifts])


def verdict_labels(verdict: Verdict) -> dict[str, str]:
    """Return the labels of a verdict for automations: decision, kinds of alarms, and whether any of them is bad."""
    red = verdict.decision is not Decision.PASS or bool(verdict.alarms)
    return {
        "passgate.decision": str(verdict.decision),
        "passgate.alarms": ",".join(sorted({str(alarm.kind) for alarm in verdict.alarms})) or "none",
        "passgate.red": str(red).lower(),
    }


def _emit(event: str, verdict: Verdict, labels: dict[str, str], lines: list[str]) -> None:
    resource = {
        "prefect.resource.id": f"passgate.run.{verdict.run_id}",
        "prefect.resource.name": verdict.run_id,
        "passgate.gate": str(verdict.gate),
        **labels,
    }
    emit_event(event=event, resource=resource, payload={"run": run_place(verdict.run_id), "told": lines})
