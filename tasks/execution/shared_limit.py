"""The limit of trials at once that several runs share, where an agent names one."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from passgate.tasks.errors import UsageError
from passgate.tasks.model.run import Plan

Slot = Callable[[], AbstractAsyncContextManager[None]]
"""A trial holds a slot of the limit while the context lasts, and waits for one to enter it."""

OpenLimit = Callable[[Plan, int], AbstractAsyncContextManager[Slot]]
"""Opens the limit of a plan's agent for a process that runs so many trials at once."""


@asynccontextmanager
async def not_shared(plan: Plan, _trials_at_once: int) -> AsyncIterator[Slot]:
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


def refuse_embedded(plan: Plan) -> None:
    """Raise `UsageError` for an agent with a limit on a server that ends with this run: others could not share it."""
    if plan.agent.concurrency_limit is not None:
        raise UsageError(
            f"the agent {plan.agent} names the concurrency limit {plan.agent.concurrency_limit!r}, which runs share on "
            "a Prefect server: set PREFECT_API_URL, or take `concurrency_limit` out of agents.yaml"
        )
