"""Run: a task and an agent in, finished trials out, each of them in the journal before it counts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from passgate.tasks.agents import make_agent
from passgate.tasks.agents.conversation.driver import converse
from passgate.tasks.agents.interface import Agent
from passgate.tasks.agents.judge import judge_model, make_judge
from passgate.tasks.agents.starts import Starts
from passgate.tasks.budgets.access import ModelAccess, Unmetered
from passgate.tasks.budgets.charged_judge import ChargedJudge, CountingJudge
from passgate.tasks.budgets.meter import Meter, open_meter
from passgate.tasks.budgets.purse import Purse
from passgate.tasks.budgets.slots import Slots
from passgate.tasks.budgets.standing import Standing
from passgate.tasks.budgets.trial_record import TrialRecord
from passgate.tasks.budgets.usage import trial_metrics
from passgate.tasks.errors import CostCapError, MeasurementError
from passgate.tasks.grade import grade_trial, outcome_of
from passgate.tasks.graders import forbidden_by
from passgate.tasks.graders.grade_metrics import with_grades
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.history.journal import Journal
from passgate.tasks.history.masking import Masker
from passgate.tasks.history.run_folder import STATE_FOLDER
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.digest import digest_of
from passgate.tasks.model.judge import Judge
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.price import PriceTable
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
    meter: Meter | None
    """`None` for agents that call no model."""
    purse: Purse
    judge: Judge | None
    suites_folder: Path
    masker: Masker
    error_retries: int
    agent_kind: AgentKind | None = None
    starts: Starts = field(default_factory=Starts)


@asynccontextmanager
async def open_bench(
    spec: AgentSpec,
    suites_folder: Path,
    policy: Policy,
    *,
    prices: PriceTable,
    purse: Purse,
    needs_price: str | None = None,
    hidden: Sequence[Path] = (),
    error_retries: int | None = None,
    label: str = "trials",
) -> AsyncIterator[Bench]:
    """What trials of an agent need, for as long as the context lasts. Raises `UsageError`.

    `needs_price` says what makes an unknown price an error; `hidden` are folders that no command may see; `label`, the
    id of a run, begins the names of temporary folders.
    """
    async with AsyncExitStack() as stack:
        meter = None
        if spec.calls_models:
            meter = await stack.enter_async_context(
                open_meter(spec, prices, purse, needs_price=needs_price, label=label)
            )
        workbench = Workbench(
            suites_folder,
            processes=policy.concurrency.processes,
            hidden=hidden,
            bridge=meter.bridge if meter else None,
            label=label,
        )
        judge = make_judge(policy.judge, suites_folder)
        model = judge_model(policy.judge)
        if judge is not None:
            stack.push_async_callback(judge.close)
        if judge is not None and model:
            judge = ChargedJudge(judge, prices.price_of(model), purse)
        agent = make_agent(spec, suites_folder)
        stack.push_async_callback(asyncio.to_thread, agent.close)
        yield Bench(
            agent=agent,
            agent_kind=spec.kind,
            workbench=await stack.enter_async_context(workbench),
            meter=meter,
            purse=purse,
            judge=judge,
            suites_folder=suites_folder,
            masker=Masker.of_environment(policy.secrets),
            error_retries=policy.error_retries if error_retries is None else error_retries,
        )


def hidden_from_agents(plan: Plan) -> list[Path]:
    """The runs and the history, and the change's own suites, which hold graders and solutions whoever judges."""
    return [STATE_FOLDER.absolute(), Path(plan.request.suites).absolute()]


def batches(tasks: Sequence[EvalTask]) -> tuple[Batch, ...]:
    """Tasks in batches of one suite each, at most about thirty of them; the order stays as far as it can."""
    size = max(1, -(-len(tasks) // MOST_BATCHES))
    by_suite: dict[str, list[EvalTask]] = {}
    for task in tasks:
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


async def run_batch(batch: Batch, bench: Bench, journal: Journal, slots: Slots, standing: Standing) -> int:
    """Run every trial of a batch that was not measured yet, each when a slot is free for it; how many were run.

    Whether a trial is still needed is asked when its turn has come; one that is not goes to the journal as `not_run`.
    Raises `UsageError` once the trials show that the agent's command cannot be started.
    """
    wanted = [(task, trial) for task in batch.tasks for trial in range(task.k)]
    return await _run_wanted(wanted, bench, journal, slots, standing)


async def run_numbered(
    task: EvalTask, trials: Sequence[int], bench: Bench, journal: Journal, slots: Slots, standing: Standing
) -> int:
    """Run some trials of one task, by their numbers, as `run_batch` does; how many were run."""
    return await _run_wanted([(task, trial) for trial in trials], bench, journal, slots, standing)


async def _run_wanted(
    wanted: Sequence[tuple[EvalTask, int]], bench: Bench, journal: Journal, slots: Slots, standing: Standing
) -> int:
    async def run_one(task: EvalTask, trial: int) -> bool:
        paid_before = standing.paid_for((task.task_id, trial))
        async with slots.slot((task.task_id, trial)):
            needless = standing.needless(task)
            if needless is None:
                finished = await run_trial(task, trial, bench, paid_before=paid_before)
                await journal.append(finished)
                bench.starts.add(finished)
                standing.add(finished.trial)
                return True
        await journal.append(left_out(task, trial, needless, bench, paid_before=paid_before))
        return False

    missing = [(task, trial) for task, trial in wanted if not standing.has((task.task_id, trial))]
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(run_one(task, trial)) for task, trial in missing]
    return sum(one.result() for one in running)


def left_out(task: EvalTask, trial: int, reason: str, bench: Bench, *, paid_before: float = 0.0) -> FinishedTrial:
    """A trial that is not run because it could not change the verdict any more."""
    blank = _blank(task, trial, 0, paid_before).model_copy(update={"left_out": True})
    return _not_run(blank, reason, bench)


async def run_trial(task: EvalTask, trial: int, bench: Bench, *, paid_before: float = 0.0) -> FinishedTrial:
    """One trial. What may be gone at the next attempt is tried again, what is left then has the status `error`.

    Once the money of the run is spent, trials are `not_run`. `paid_before` is what it has cost already, in US dollars.
    """
    if bench.purse.exhausted:
        reason = f"the run's cost cap of ${bench.purse.cap:g} is spent"
        return _not_run(_blank(task, trial, 0, paid_before), reason, bench)
    for attempt in range(1, bench.error_retries + 2):
        finished, transient = await _attempt(task, _blank(task, trial, attempt, paid_before), bench)
        if not transient or attempt > bench.error_retries:
            break
        paid_before = finished.trial.cost
        await asyncio.sleep(_RETRY_PAUSE_SECONDS * attempt)
    return finished


async def _attempt(task: EvalTask, blank: Trial, bench: Bench) -> tuple[FinishedTrial, bool]:
    """One attempt at a trial, and whether it is worth another one. What is known of it is kept, however it ends."""
    known = TrialRecord(blank, CountingJudge(bench.judge) if bench.judge else None)
    update: dict[str, Any]
    try:
        update = await _measured(task, known, bench)
        transient = update["status"] is TrialStatus.ERROR and any(grade.transient for grade in update["grades"])
    except (MeasurementError, OSError) as error:
        status = TrialStatus.NOT_RUN if isinstance(error, CostCapError) else TrialStatus.ERROR
        update = {"status": status, "reason": str(error)}
        transient = status is TrialStatus.ERROR and getattr(error, "transient", True)
    return _finished(known.ended(update), known.transcript, bench.masker), transient


def _not_run(blank: Trial, reason: str, bench: Bench) -> FinishedTrial:
    return _finished(
        blank.model_copy(update={"status": TrialStatus.NOT_RUN, "reason": reason}), Transcript(), bench.masker
    )


def _blank(task: EvalTask, trial: int, attempt: int, paid_before: float) -> Trial:
    """A trial of which nothing is known yet but what it has cost before."""
    return Trial(
        suite=task.suite,
        task_id=task.task_id,
        trial=trial,
        k=task.k,
        metric=task.metric,
        sequential=task.sequential,
        status=TrialStatus.ERROR,
        attempts=attempt,
        unmeasured_cost=paid_before or None,
        started_at=datetime.now(UTC),
        task_digest=task.task_digest,
        grader_digest=task.grader_digest,
        file=task.file,
        line=task.line,
    )


async def _measured(task: EvalTask, known: TrialRecord, bench: Bench) -> dict[str, Any]:
    """What a trial comes to. Raises `MeasurementError`; `known` holds what was found out before."""
    async with bench.workbench.sandbox(task) as sandbox:
        seconds = task.budgets.max_seconds or DEFAULT_SECONDS
        with _access(task, bench.meter) as access:
            said = await converse(
                bench.agent, task, known.trial.trial, sandbox.for_the_agent, access, known.judge, seconds=seconds
            )
            known.agent_paid = access.paid
        metrics = trial_metrics(said.transcript)
        known.said(said.transcript, metrics, sandbox.isolation)
        said.checked()
        await asyncio.to_thread(sandbox.restore)
        evidence = Evidence(
            task=task,
            transcript=said.transcript,
            metrics=metrics,
            sandbox=sandbox,
            suites_folder=bench.suites_folder,
            judge=known.judge,
            agent_kind=bench.agent_kind,
        )
        grades = await grade_trial(evidence)
        known.trial = known.trial.model_copy(update={"grades": grades, "metrics": with_grades(metrics, task, grades)})
    return {**outcome_of(task, said.transcript, metrics, grades)._asdict(), "grades": grades}


def _access(task: EvalTask, meter: Meter | None) -> AbstractContextManager[ModelAccess]:
    if meter is None:
        return nullcontext(Unmetered())
    return meter.trial(task.budgets, forbidden_by(task))


def _finished(trial: Trial, transcript: Transcript, masker: Masker) -> FinishedTrial:
    """The trial with its transcript as it will be kept, so that the digest is that of what is kept."""
    text = transcript.model_dump_json()
    masked = masker.json(text)
    kept = transcript if masked == text else Transcript.model_validate_json(masked)
    digest = digest_of(kept.model_dump(mode="json"))
    return FinishedTrial(trial=trial.model_copy(update={"transcript_digest": digest}), transcript=kept)
