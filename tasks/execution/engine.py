"""What the pipeline asks of an engine, and the pipeline without one: its verbs are plain functions then."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple, ParamSpec, Protocol, TypeVar

from passgate.tasks.model.run import Plan
from passgate.tasks.model.verdict import Verdict

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[[], Awaitable[T]]  # A verb with its arguments


def work_of(verb: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> Work[T]:
    """Return a sync verb as an async one."""

    async def work() -> T:
        return verb(*arguments, **options)

    return work


class StepFault(NamedTuple):
    """Why the result of a step is one to look at."""

    message: str
    is_measured: bool  # Whether the agent has failed; else what it does could not be measured


def no_fault(_result: object) -> StepFault | None:
    """Return no fault: the end of the step is a success."""
    return None


class Engine(Protocol):
    """Shows a run to those who watch it. Nothing of the verdict comes from it, and its own troubles change nothing."""

    async def step(
        self, name: str, work: Work[T], run_name: str = "", fault: Callable[[T], StepFault | None] = no_fault
    ) -> T:
        """Do a step of the pipeline; gives what it gives and raises what it raises.

        It is shown by its own name and that of this run of it. `fault` says why its result is one to look at.
        """

    def progress(self, plan: Plan) -> AbstractAsyncContextManager[None]:
        """Show how far the run of a plan has come, while the context lasts."""

    async def publish(self, verdict: Verdict) -> None:
        """Show a verdict, its reasons and its numbers."""


class NoEngine:
    """Does the steps of a pipeline and shows nothing."""

    async def step(
        self, name: str, work: Work[T], run_name: str = "", fault: Callable[[T], StepFault | None] = no_fault
    ) -> T:
        return await work()

    @asynccontextmanager
    async def progress(self, plan: Plan) -> AsyncIterator[None]:
        yield

    async def publish(self, verdict: Verdict) -> None:
        return
