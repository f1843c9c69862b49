"""Run: a task and an agent in, finished trials out, each of them in the journal before it counts."""

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from passgate.tasks.agents.interface import Agent
from passgate.tasks.budgets.usage import trial_metrics
from passgate.tasks.errors import MeasurementError
from passgate.tasks.grade import grade_trial, status_of
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.history.journal import Journal
from passgate.tasks.history.masking import Masker
from passgate.tasks.model.digest import digest_of
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.judge import Judge
from passgate.tasks.model.run import Batch, Plan
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import FinishedTrial, Trial, TrialStatus
from passgate.tasks.sandboxes.workbench import Workbench

DEFAULT_SECONDS = 3600.0
"""Of a trial whose task and suite set no `max_seconds`: no trial may run for ever."""
MOST_BATCHES = 32
"""Prefect task runs cost time on its server, so tasks share them once there are many."""
_RETRY_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What trials are run with."""

    agent: Agent
    workbench: Workbench
    judge: Judge | None
    suites_folder: Path
    masker: Masker
    error_retries: int


def batches(plan: Plan) -> tuple[Batch, ...]:
    """The tasks of a plan in batches of one suite each, at most about thirty of them."""
    size = max(1, -(-len(plan.tasks) // MOST_BATCHES))
    by_suite: dict[str, list[EvalTask]] = {}
    for task in plan.tasks:
        by_suite.setdefault(task.suite, []).append(task)
    return tuple(
        Batch(
            name=_batch_name(suite, tasks[start : start + size]), suite=suite, tasks=tuple(tasks[start : start + size])
        )
        for suite, tasks in by_suite.items()
        for start in range(0, len(tasks), size)
    )


def _batch_name(suite: str, tasks: Sequence[EvalTask]) -> str:
    others = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
    return f"{suite}/{tasks[0].task_id}{others}"


async def run_batch(
    batch: Batch, bench: Bench, journal: Journal, limit: asyncio.Semaphore, done: Collection[tuple[str, int]]
) -> int:
    """Run every trial of a batch that is not done yet, as many at once as the limit allows; how many were run."""

    async def run_one(task: EvalTask, trial: int) -> None:
        async with limit:
            await journal.append(await run_trial(task, trial, bench))

    missing = [(task, trial) for task in batch.tasks for trial in range(task.k) if (task.task_id, trial) not in done]
    async with asyncio.TaskGroup() as group:
        for task, trial in missing:
            group.create_task(run_one(task, trial))
    return len(missing)


async def run_trial(task: EvalTask, trial: int, bench: Bench) -> FinishedTrial:
    """One trial. What may be gone at the next attempt is tried again, what is left then has the status `error`."""
    for attempt in range(1, bench.error_retries + 2):
        finished, transient = await _attempt(task, trial, attempt, bench)
        if not transient or attempt > bench.error_retries:
            break
        await asyncio.sleep(_RETRY_PAUSE_SECONDS * attempt)
    return finished


async def _attempt(task: EvalTask, trial: int, attempt: int, bench: Bench) -> tuple[FinishedTrial, bool]:
    """One attempt at a trial, and whether it is worth another one."""
    blank = Trial(
        suite=task.suite,
        task_id=task.task_id,
        trial=trial,
        k=task.k,
        metric=task.metric,
        status=TrialStatus.ERROR,
        attempts=attempt,
        started_at=datetime.now(UTC),
        task_digest=task.task_digest,
        grader_digest=task.grader_digest,
        file=task.file,
        line=task.line,
    )
    try:
        return await _measured(task, blank, bench)
    except (MeasurementError, OSError) as error:
        transient = not isinstance(error, MeasurementError) or error.transient
        return _finished(blank.model_copy(update={"reason": str(error)}), Transcript(), bench.masker), transient


async def _measured(task: EvalTask, blank: Trial, bench: Bench) -> tuple[FinishedTrial, bool]:
    async with bench.workbench.sandbox(task) as sandbox:
        started = time.monotonic()
        transcript = await bench.agent.run(
            task, blank.trial, sandbox.for_the_agent, seconds=task.budgets.max_seconds or DEFAULT_SECONDS
        )
        transcript = transcript.model_copy(update={"wall_time_seconds": time.monotonic() - started})
        metrics = trial_metrics(transcript)
        evidence = Evidence(
            task=task,
            transcript=transcript,
            metrics=metrics,
            sandbox=sandbox,
            suites_folder=bench.suites_folder,
            judge=bench.judge,
        )
        grades = await grade_trial(evidence)
    status, reason = status_of(task, transcript, metrics, grades)
    update = {
        "status": status,
        "reason": reason,
        "grades": grades,
        "metrics": metrics,
        "isolation": sandbox.isolation,
    }
    return _finished(blank.model_copy(update=update), transcript, bench.masker), _transient(status, grades)


def _transient(status: TrialStatus, grades: Sequence[Grade]) -> bool:
    return status is TrialStatus.ERROR and any(grade.transient for grade in grades)


def _finished(trial: Trial, transcript: Transcript, masker: Masker) -> FinishedTrial:
    """The trial with its transcript as it will be kept, so that the digest is that of what is kept."""
    text = transcript.model_dump_json()
    masked = masker.json(text)
    kept = transcript if masked == text else Transcript.model_validate_json(masked)
    digest = digest_of(kept.model_dump(mode="json"))
    return FinishedTrial(trial=trial.model_copy(update={"transcript_digest": digest}), transcript=kept)
