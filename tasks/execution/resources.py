"""What trials are run with: the agent, the meter, the workbench, the judge."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from passgate.tasks.agents import make_agent
from passgate.tasks.agents.interface import Agent
from passgate.tasks.agents.llm_judge import judge_model, make_llm_judge
from passgate.tasks.errors import MeasurementError
from passgate.tasks.history.masking import masker_for
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.grade import LlmJudge
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript
from passgate.tasks.reports.messages import warn
from passgate.tasks.sandboxes.isolation import UNISOLATED
from passgate.tasks.sandboxes.workbench import Workbench

if TYPE_CHECKING:
    from passgate.tasks.metering.meter import Meter

_TICK_SECONDS: Final = 0.5
_NOTICED_SECONDS: Final = 5.0  # A busy machine keeps a process waiting for less


class Standstills:
    """Looks at the clock twice a second, and knows when it could not: somebody stopped this process, the machine slept,
    or its memory was swapped out.
    """

    def __init__(self) -> None:
        self._ends: list[tuple[float, float]] = []

    async def notice(self) -> None:
        """Look at the clock until cancelled."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(_TICK_SECONDS)
            seconds = time.monotonic() - before - _TICK_SECONDS
            if seconds >= _NOTICED_SECONDS:
                self._ends.append((time.monotonic(), seconds))

    async def refuse_time_out(self, transcript: Transcript, started: float) -> None:
        """Raise `MeasurementError` for an agent that timed out while this process stood still: nobody can say whether
        it would have ended in time. `started` is when it began, by the monotonic clock.
        """
        if transcript.end is not EndReason.TIMED_OUT:
            return
        # After a standstill the time limits are over before the clock has been looked at.
        await asyncio.sleep(2 * _TICK_SECONDS)
        seconds = sum(length for end, length in self._ends if end > started)
        if seconds:
            raise MeasurementError(
                f"passgate stood still for {seconds:.0f} s while the agent ran, so its time limit says nothing: "
                "something stopped the process, or the machine slept or swapped memory",
                transient=True,
            )


@asynccontextmanager
async def noticed_standstills() -> AsyncIterator[Standstills]:
    """Notice standstills of this process while the context lasts."""
    standstills = Standstills()
    noticing = asyncio.create_task(standstills.notice())
    try:
        yield standstills
    finally:
        noticing.cancel()


@dataclass(frozen=True, kw_only=True)
class TrialResources:
    """What trials are run with."""

    agent: Agent
    workbench: Workbench
    meter: "Meter | None"  # `None` for agents that call no model
    cost_cap: CostCap
    judge: LlmJudge | None
    suites_folder: Path
    masker: Masker
    error_retries: int
    standstills: Standstills
    agent_kind: AgentKind | None = None


@asynccontextmanager
async def open_resources(
    spec: AgentSpec,
    suites_folder: Path,
    policy: Policy,
    *,
    prices: PriceTable,
    cost_cap: CostCap,
    needs_price: str | None = None,
    hidden: Sequence[Path] = (),
    error_retries: int | None = None,
    label: str = "trials",
    tasks: Iterable[EvalTask] = (),
) -> AsyncIterator[TrialResources]:
    """Open what trials of an agent need, for the `async with` block. Raise `UsageError`.

    `needs_price` says what makes an unknown price an error; `hidden` are folders that no command may see; `label`, the
    id of a run, begins the names of temporary folders. Secrets of the `tasks` are masked.
    """
    async with AsyncExitStack() as stack:
        meter = None
        if spec.calls_models:
            # Imported late: a run of the reference needs no meter, and the built-in agent no server.
            from passgate.tasks.metering.meter import open_meter

            meter = await stack.enter_async_context(open_meter(spec, prices, cost_cap, needs_price=needs_price))
            if not spec.asks_in_process:
                from passgate.tasks.metering.server import serving

                await stack.enter_async_context(serving(meter, label))
        workbench = Workbench(
            suites_folder,
            processes=policy.concurrency.processes,
            hidden=hidden,
            bridge=meter.bridge if meter else None,
            label=label,
            is_isolation_required=spec.calls_models and policy.isolation == "required",
            agent=spec.name,
        )
        if spec.calls_models and not workbench.isolation.bubblewrap:
            _warn_once(f"NO ISOLATION: {workbench.isolation.why_not}: {UNISOLATED}")
        judge = make_llm_judge(policy.judge, suites_folder)
        model = judge_model(policy.judge)
        if judge is not None:
            stack.push_async_callback(judge.close)
        if judge is not None and model:
            from passgate.tasks.metering.cost_cap import ChargedLlmJudge

            judge = ChargedLlmJudge(judge, prices.price(model), cost_cap)
        agent = make_agent(spec, suites_folder)
        stack.push_async_callback(asyncio.to_thread, agent.close)
        yield TrialResources(
            agent=agent,
            agent_kind=spec.kind,
            standstills=await stack.enter_async_context(noticed_standstills()),
            workbench=await stack.enter_async_context(workbench),
            meter=meter,
            cost_cap=cost_cap,
            judge=judge,
            suites_folder=suites_folder,
            masker=masker_for(policy, spec, tasks=tasks),
            error_retries=policy.error_retries if error_retries is None else error_retries,
        )


@cache
def _warn_once(message: str) -> None:
    warn(message)


def hidden_from_agents(plan: Plan) -> list[Path]:
    """Return the folders of the runs, the history and the change's own suites, which contain graders and solutions."""
    return [STATE_FOLDER.absolute(), Path(plan.request.suites).absolute()]
