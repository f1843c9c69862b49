"""What runs batches: the trials of a batch in, the finished ones in the journal and what the batch has come to out."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from passgate.tasks.agents.starts import Starts
from passgate.tasks.execution.engine import StepFault
from passgate.tasks.execution.resources import GradeTrial, TrialResources, hidden_from_agents, open_resources
from passgate.tasks.execution.run_state import RunState
from passgate.tasks.execution.scheduler import Scheduler, TrialKey
from passgate.tasks.execution.shared_limit import OpenLimit, Slot, not_shared
from passgate.tasks.execution.trial import left_out, run_trial
from passgate.tasks.execution.waiting import WaitingTrials
from passgate.tasks.gates.early_stopping import needless
from passgate.tasks.history.journal import Journal
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.measurement import TaskMeasurement, TaskState
from passgate.tasks.model.run import Batch, BatchOutcome, Plan
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.reports.figures import missing
from passgate.tasks.stats.measurement import measurement_of


@dataclass(frozen=True, kw_only=True)
class Worker:
    """What a process has open to run batches of a plan."""

    tasks: Mapping[str, EvalTask]
    resources: Mapping[Suite, TrialResources]
    journal: Journal
    run_state: RunState
    starts: Starts
    shared_slot: Slot = nullcontext

    async def run(self, batch: Batch, scheduler: Scheduler) -> BatchOutcome:
        """Run every trial of a batch that was not measured yet, each when the scheduler has a slot for it.

        Whether a trial is still needed is asked when its turn has come; one that is not goes to the journal as
        `not_run`. Raises `UsageError` once the trials show that the agent's command cannot be started.
        """
        return await self.run_trials(
            batch.name, WaitingTrials(key for key in batch.trials if not self.run_state.has(key)), scheduler
        )

    async def run_trials(self, name: str, waiting: WaitingTrials, scheduler: Scheduler) -> BatchOutcome:
        """As `run`, for the trials that wait and are not given back meanwhile, measured before or not."""
        ended: list[tuple[FinishedTrial, float]] = []
        async with asyncio.TaskGroup() as group:
            for key in waiting.keys:
                group.create_task(self._run_one(key, waiting, scheduler, ended))
        return BatchOutcome(
            name=name,
            trials=tuple(finished.trial for finished, _ in ended),
            spent=sum(finished.trial.cost - paid_before for finished, paid_before in ended),
            not_started=tuple(finished.transcript.detail for finished, _ in ended if finished.has_not_started),
            warnings=self.warnings,
            released=waiting.released,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What went wrong so far that no trial depends on, each once."""
        every = [(opened.masker, one) for opened in self.resources.values() for one in opened.workbench.warnings]
        return tuple(dict.fromkeys(masker.render(warning) for masker, warning in every))

    def fault_of(self, batch: Batch) -> StepFault | None:
        """Which tasks of a batch have not passed by the trials so far, each with its first failure or error; a task
        that is alone in its batch is not named.
        """
        tasks = [self.tasks[task_id] for task_id in dict.fromkeys(task_id for task_id, _ in batch.trials)]
        measured = measurement_of(tasks, self.run_state.finished).tasks
        faults = {one.name: fault for one in measured if (fault := fault_of_task(one)) is not None}
        if not faults:
            return None
        named = (f"{name}: {fault.message}" if len(tasks) > 1 else fault.message for name, fault in faults.items())
        return StepFault("\n".join(named), is_measured=any(fault.is_measured for fault in faults.values()))

    async def _run_one(
        self, key: TrialKey, waiting: WaitingTrials, scheduler: Scheduler, ended: list[tuple[FinishedTrial, float]]
    ) -> None:
        task = self.tasks[key[0]]
        resources, paid_before = self.resources[task.suite], self.run_state.paid_for(key)
        async with scheduler.slot(key):
            is_wanted = key in waiting and self.run_state.needless(task) is None
            async with self.shared_slot() if is_wanted else nullcontext():
                if not waiting.begin(key):
                    return
                reason = self.run_state.needless(task)
                if reason is None:
                    finished = await run_trial(task, key[1], resources, paid_before=paid_before)
                    await self.journal.append(finished)
                    ended.append((finished, paid_before))
                    self.starts.add(finished)
                    self.run_state.add(finished.trial)
                    return
        await self.journal.append(left_out(task, key[1], reason, resources, paid_before=paid_before))


def fault_of_task(task: TaskMeasurement) -> StepFault | None:
    """How many trials of a task passed and why the first one did not; `None` of a task that has passed."""
    if task.state is TaskState.PASSED:
        return None
    failed = task.state is TaskState.FAILED
    counts = ", ".join((f"{task.passed}/{task.n} trials passed", *missing(task.errors, task.not_run)))
    return StepFault(f"{counts}; {(failed and task.failure) or task.error or task.failure}", is_measured=failed)


@asynccontextmanager
async def open_worker(
    plan: Plan,
    journal: Journal,
    finished: Sequence[FinishedTrial],
    cost_cap: CostCap,
    grade: GradeTrial,
    open_limit: OpenLimit = not_shared,
    at_once: int | None = None,
) -> AsyncIterator[Worker]:
    """A worker for a plan of which these trials have finished, while the context lasts. Raises `UsageError`.

    `at_once` is how many trials it runs side by side, where it is not the number of the plan.
    """
    starts = Starts()
    starts.resume(finished)
    limit = open_limit(plan, at_once or trials_at_once(plan))
    async with resources_of(plan, cost_cap, grade) as resources, limit as shared_slot:
        yield Worker(
            tasks={task.task_id: task for task in plan.tasks},
            resources=resources,
            journal=journal,
            run_state=RunState((one.trial for one in finished), partial(needless, plan)),
            starts=starts,
            shared_slot=shared_slot,
        )


def trials_at_once(plan: Plan) -> int:
    """How many trials of a plan run side by side, wherever they run."""
    return plan.request.jobs or plan.policy.concurrency.trials


@asynccontextmanager
async def resources_of(
    plan: Plan, cost_cap: CostCap, grade: GradeTrial
) -> AsyncIterator[Mapping[Suite, TrialResources]]:
    """What the tasks of each suite are run with: opened once for each folder that they are from."""
    suites = dict.fromkeys(task.suite for task in plan.tasks)
    async with AsyncExitStack() as stack:
        opened = {
            folder: await stack.enter_async_context(
                open_resources(
                    plan.agent,
                    folder,
                    plan.policy,
                    grade=grade,
                    prices=plan.prices,
                    cost_cap=cost_cap,
                    needs_price=plan.needs_price,
                    hidden=hidden_from_agents(plan),
                    label=plan.run_id,
                )
            )
            for folder in dict.fromkeys(map(plan.folder_of, suites))
        }
        yield {suite: opened[plan.folder_of(suite)] for suite in suites}
