"""Run the trials of batches in this process, within the limit of trials at once that runs share."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from passgate.tasks.errors import UsageError
from passgate.tasks.execution.coordinator import Round, RunState
from passgate.tasks.execution.engine import Engine, StepFault, no_fault
from passgate.tasks.execution.resources import TrialResources, hidden_from_agents, open_resources
from passgate.tasks.execution.scheduler import Scheduler, TrialKey
from passgate.tasks.execution.trial import left_out, run_trial
from passgate.tasks.history.run_store import COORDINATOR, RunStore
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.measurement import TaskMeasurement, TaskState
from passgate.tasks.model.run import Batch, Plan
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.reports.figures import missing
from passgate.tasks.stats.measurement import measure_trials

Slot = Callable[[], AbstractAsyncContextManager[None]]
"""A trial holds a slot of the shared limit while the context lasts, and waits for one to enter it."""

OpenLimit = Callable[[Plan], AbstractAsyncContextManager[Slot]]
"""Opens the limit that a plan's agent names for a process that runs trials."""


@asynccontextmanager
async def not_shared(plan: Plan) -> AsyncIterator[Slot]:
    """Slots without end. Raises `UsageError` for an agent whose trials need those of a limit."""
    refuse_uncounted(plan)
    yield nullcontext


def refuse_uncounted(plan: Plan) -> None:
    """Raise `UsageError` for an agent that names a limit, where no Prefect server counts its trials.

    A change that edits Prefect's settings is judged without Prefect, and nothing of its own may keep it from that.
    """
    if plan.agent.concurrency_limit is not None and not plan.base.prefect_edits:
        raise UsageError(
            f"a Prefect server has to count the trials of the agent {plan.agent}, which names the concurrency limit "
            f"{plan.agent.concurrency_limit!r}: leave out --engine none (PASSGATE_ENGINE) and set PREFECT_API_URL, or "
            "take `concurrency_limit` out of agents.yaml"
        )


@dataclass(frozen=True, kw_only=True)
class Worker:
    """What a process has open to run batches of a plan."""

    tasks: Mapping[str, EvalTask]
    resources: Mapping[Suite, TrialResources]
    run_state: RunState
    shared_slot: Slot = nullcontext

    async def run(self, batch: Batch, scheduler: Scheduler) -> None:
        """Run every trial of a batch that was not measured yet, each when the scheduler has a slot for it.

        A trial that is not needed any more when its turn comes is recorded as `not_run`. Raises what
        `RunState.record` raises.
        """
        async with asyncio.TaskGroup() as group:
            for key in batch.trials:
                if not self.run_state.has(key):
                    group.create_task(self._run_one(key, scheduler))
        every = [(opened.masker, one) for opened in self.resources.values() for one in opened.workbench.warnings]
        self.run_state.warnings.update(dict.fromkeys(masker.render(warning) for masker, warning in every))

    def find_fault(self, batch: Batch, _result: object = None) -> StepFault | None:
        """Return why tasks of a batch have not passed: the first failure or error of each, `None` if all have passed.

        A task that is alone in its batch is not named.
        """
        tasks = [self.tasks[task_id] for task_id in dict.fromkeys(task_id for task_id, _ in batch.trials)]
        measured = measure_trials(tasks, self.run_state.finished).tasks
        faults = {one.name: fault for one in measured if (fault := fault_of_task(one)) is not None}
        if not faults:
            return None
        named = (f"{name}: {fault.message}" if len(tasks) > 1 else fault.message for name, fault in faults.items())
        return StepFault("\n".join(named), is_measured=any(fault.is_measured for fault in faults.values()))

    async def _run_one(self, key: TrialKey, scheduler: Scheduler) -> None:
        task, state = self.tasks[key[0]], self.run_state
        resources, paid_before = self.resources[task.suite], state.paid_for(key)
        async with scheduler.slot(key), self.shared_slot() if state.needless(task) is None else nullcontext():
            # It may have become needless while it waited for a shared slot.
            reason = state.needless(task)
            if reason is None:
                await state.record(await run_trial(task, key[1], resources, paid_before=paid_before))
                return
        await state.record(left_out(task, key[1], reason, resources.masker, paid_before=paid_before))


def fault_of_task(task: TaskMeasurement) -> StepFault | None:
    """Return how many trials of a task passed and why the first one did not; `None` for a task that has passed."""
    if task.state is TaskState.PASSED:
        return None
    failed = task.state is TaskState.FAILED
    counts = ", ".join((f"{task.passed}/{task.n} trials passed", *missing(task.errors, task.not_run)))
    return StepFault(f"{counts}; {(failed and task.failure) or task.error or task.failure}", is_measured=failed)


@asynccontextmanager
async def open_worker(
    plan: Plan, run_state: RunState, cost_cap: CostCap, open_limit: OpenLimit = not_shared
) -> AsyncIterator[Worker]:
    """Open what the trials of a plan need while the context lasts, once for each suites folder. Raises `UsageError`."""
    suites = dict.fromkeys(task.suite for task in plan.tasks)
    async with AsyncExitStack() as stack:
        opened = {
            folder: await stack.enter_async_context(
                open_resources(
                    plan.agent,
                    folder,
                    plan.policy,
                    prices=plan.prices,
                    cost_cap=cost_cap,
                    needs_price=plan.needs_price,
                    hidden=hidden_from_agents(plan),
                    label=plan.run_id,
                    tasks=plan.tasks,
                )
            )
            for folder in dict.fromkeys(map(plan.suites_folder_for, suites))
        }
        yield Worker(
            tasks={task.task_id: task for task in plan.tasks},
            resources={suite: opened[plan.suites_folder_for(suite)] for suite in suites},
            run_state=run_state,
            shared_slot=await stack.enter_async_context(open_limit(plan)),
        )


def trials_at_once(plan: Plan) -> int:
    """Return how many trials of a plan run side by side, wherever they run."""
    return plan.request.jobs or plan.policy.concurrency.trials


class InProcess:
    """The default executor: all batches in this process, each as a step of the engine."""

    def __init__(self, engine: Engine, worker: Worker, at_once: int) -> None:
        self._engine, self._worker, self._at_once = engine, worker, at_once

    async def run(self, current: Round) -> None:
        """See `Executor`. The order and the number of trials at once hold over all batches of the round."""
        scheduler = Scheduler(self._at_once, current.order)
        async with asyncio.TaskGroup() as group:
            for batch in current.batches:
                # Confirming trials show a task that has failed already.
                fault = partial(self._worker.find_fault, batch) if batch.step == "run" else no_fault
                work = partial(self._worker.run, batch, scheduler)
                group.create_task(self._engine.step(batch.step, work, batch.name, fault))


@asynccontextmanager
async def in_process(
    engine: Engine, plan: Plan, store: RunStore, run_state: RunState, *, open_limit: OpenLimit = not_shared
) -> AsyncIterator[InProcess]:
    """Open the executor of this process while the context lasts. Raises `UsageError` and `StorageError`."""
    if store.read_file(COORDINATOR):
        # A cluster may still have batches of a coordinator that was killed.
        await asyncio.to_thread(store.write_coordinator, "")
    cost_cap = CostCap(plan.request.max_cost, spent=run_state.spent)
    async with open_worker(plan, run_state, cost_cap, open_limit) as worker:
        yield InProcess(engine, worker, trials_at_once(plan))
