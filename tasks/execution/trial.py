"""One trial: an eval task and an agent in, a finished trial out."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

from passgate.tasks.agents.conversation import converse
from passgate.tasks.agents.interface import AgentSandbox
from passgate.tasks.agents.tools import make_toolbox
from passgate.tasks.errors import EXCERPT, CostCapError, MeasurementError, UnknownPriceError
from passgate.tasks.execution.resources import TrialResources
from passgate.tasks.graders import TrialResult, add_grade_metrics, grade_trial, trial_result
from passgate.tasks.graders.evidence import Evidence
from passgate.tasks.graders.tool_calls import forbidden_by
from passgate.tasks.metering.access import ModelAccess, Unmetered
from passgate.tasks.metering.usage import TrialRecord, trial_metrics
from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.quotes import Masker, cut_middle
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import FinishedTrial, Trial, TrialStatus

DEFAULT_SECONDS = 3600.0  # Of a trial whose task and suite set no `max_seconds`: no trial may run for ever
_RETRY_PAUSE_SECONDS = 1.0


def left_out(task: EvalTask, trial: int, reason: str, masker: Masker, *, paid_before: float = 0.0) -> FinishedTrial:
    """Return a trial that is not run because it cannot change the verdict any more."""
    blank = _blank(task, trial, 0, paid_before).model_copy(update={"left_out": True})
    return _not_run(blank, reason, masker)


async def run_trial(
    task: EvalTask, trial: int, resources: TrialResources, *, paid_before: float = 0.0
) -> FinishedTrial:
    """Run one trial. What may be gone at the next attempt is tried again, what is left then has the status `error`.

    Once the money of the run is spent, trials are `not_run`. `paid_before` is what it has cost already, in US dollars.
    """
    if resources.cost_cap.exhausted:
        reason = f"the run's cost cap of ${resources.cost_cap.cap:g} is spent"
        return _not_run(_blank(task, trial, 0, paid_before), reason, resources.masker)
    blank = _blank(task, trial, 1, paid_before)
    while True:
        finished, transient = await _attempt(task, blank, resources)
        tried, attempts = finished.trial, blank.attempts
        if not transient or attempts > resources.error_retries:
            return finished
        await asyncio.sleep(_RETRY_PAUSE_SECONDS * attempts)
        late = {"late_errors": tried.late_errors, "late_error": tried.late_error}
        blank = _blank(task, trial, attempts + 1, tried.cost).model_copy(update=late)


async def _attempt(task: EvalTask, blank: Trial, resources: TrialResources) -> tuple[FinishedTrial, bool]:
    """Make one attempt at a trial. Return what is known of it, however it ends, and whether another one is worth it."""
    judge = None
    if resources.judge:
        from passgate.tasks.metering.cost_cap import ChargedLlmJudge

        judge = ChargedLlmJudge(resources.judge)
    known = TrialRecord(blank, judge)
    try:
        result = await _measured(task, known, resources)
        transient = result.status is TrialStatus.ERROR and any(grade.transient for grade in known.trial.grades)
    except (MeasurementError, OSError) as error:
        status = TrialStatus.NOT_RUN if isinstance(error, CostCapError) else TrialStatus.ERROR
        result = TrialResult(status, error.message if isinstance(error, MeasurementError) else str(error), None)
        transient = status is TrialStatus.ERROR and getattr(error, "transient", True)
        if isinstance(error, UnknownPriceError):
            known.trial = known.trial.model_copy(update={"unpriced_model": error.model})
    if known.is_late_error and result.status is TrialStatus.ERROR:
        late = {"late_errors": blank.late_errors + 1, "late_error": resources.masker.render(result.reason)}
        known.trial = known.trial.model_copy(update=late)
    return _finished(known.final_trial(), result, known.transcript, resources.masker), transient


def _not_run(blank: Trial, reason: str, masker: Masker) -> FinishedTrial:
    return _finished(blank, TrialResult(TrialStatus.NOT_RUN, reason, None), Transcript(), masker)


def _blank(task: EvalTask, trial: int, attempt: int, paid_before: float) -> Trial:
    """Return a trial of which only the earlier cost is known."""
    return Trial(
        suite=task.suite,
        task_id=task.task_id,
        trial=trial,
        k=task.k,
        metric=task.metric,
        status=TrialStatus.ERROR,
        attempts=attempt,
        unmeasured_cost=paid_before or None,
        started_at=datetime.now(UTC),
        task_digest=task.task_digest,
        grader_digest=task.grader_digest,
        file=task.file,
        line=task.line,
    )


async def _measured(task: EvalTask, known: TrialRecord, resources: TrialResources) -> TrialResult:
    """Run and grade a trial. Raise `MeasurementError`; `known` then contains what was found out before."""
    async with resources.workbench.sandbox(task) as sandbox:
        seconds, started = task.budgets.max_seconds or DEFAULT_SECONDS, time.monotonic()
        async with _access(task, resources, sandbox.for_the_agent) as access:
            said = await converse(
                resources.agent, task, known.trial.trial, sandbox.for_the_agent, access, known.judge, seconds=seconds
            )
            known.agent_paid = access.paid
            known.is_late_error = said.error is not None and access.could_know
        changes = await asyncio.to_thread(sandbox.agent_changes) if sandbox.is_used else None
        transcript = said.transcript.model_copy(update={"file_changes": changes})
        metrics = trial_metrics(transcript)
        known.add_transcript(transcript, metrics, sandbox.isolation)
        said.result()
        await resources.standstills.refuse_time_out(transcript, started)
        evidence = Evidence(
            task=task,
            transcript=transcript,
            metrics=metrics,
            sandbox=sandbox,
            suites_folder=resources.suites_folder,
            masker=resources.masker,
            judge=known.judge,
            agent_kind=resources.agent_kind,
        )
        grades = await grade_trial(evidence)
        known.trial = known.trial.model_copy(
            update={"grades": grades, "metrics": add_grade_metrics(metrics, task, grades)}
        )
    return trial_result(task, transcript, metrics, grades)


@asynccontextmanager
async def _access(task: EvalTask, resources: TrialResources, sandbox: AgentSandbox) -> AsyncIterator[ModelAccess]:
    """Open the trial's way to models and tools. Raise `MeasurementError` for an MCP server that does not start."""
    meter = resources.meter
    if meter is None:
        yield Unmetered()
        return
    async with AsyncExitStack() as stack:
        toolbox, servers = None, None
        if meter.bridge is None:
            toolbox = make_toolbox(task, sandbox, resources.suites_folder)
        elif meter.start_mcp is not None and (task.tools or task.replay or task.mcp_servers or meter.spec.names_mcp):
            toolbox = make_toolbox(task, sandbox, resources.suites_folder)
            await meter.start_mcp()
        if task.mcp_servers:
            from passgate.tasks.metering.meter import import_with_mcp

            module = await import_with_mcp("mcp_servers")
            connecting = module.connected_servers(task.mcp_servers, sandbox, resources.suites_folder)
            servers = await stack.enter_async_context(connecting)
        with meter.trial(task.budgets, forbidden_by(task), task.tools, toolbox, servers) as access:
            yield access


def _finished(trial: Trial, result: TrialResult, transcript: Transcript, masker: Masker) -> FinishedTrial:
    """Return a trial as it leaves its sandbox: without secrets, with the digest of its stored transcript."""
    text = transcript.model_dump_json()
    masked = masker.json(text)
    whole = transcript if masked == text else Transcript.model_validate_json(masked)
    kept = whole.model_copy(update={"detail": cut_middle(whole.detail, EXCERPT)})
    update = {
        "status": result.status,
        "reason": masker.render(result.reason),
        "score": result.score,
        "model": masker.text(trial.model),
        "unpriced_model": masker.text(trial.unpriced_model),
        "transcript_digest": json_digest(kept.model_dump(mode="json")),
    }
    return FinishedTrial(trial=trial.model_copy(update=update), transcript=kept)
