"""The engine of the pipeline: without another one, its verbs are plain functions."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, ParamSpec, TypeVar

from passgate.tasks.model.run import Plan
from passgate.tasks.model.verdict import Verdict

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[[], Awaitable[T]]  # A verb with its arguments


def as_work(verb: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> Work[T]:
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


class Engine:
    """Does the steps of a pipeline, and shows nothing.

    An engine that shows a run derives from this. Nothing of the verdict comes from it, and its own troubles change
    nothing.
    """

    async def step(
        self, name: str, work: Work[T], run_name: str = "", fault: Callable[[T], StepFault | None] = no_fault
    ) -> T:
        """Do a step of the pipeline. Return what it returns and raise what it raises.

        It is shown by its own name and that of this run of it. `fault` says why its result is one to look at.
        """
        return await work()

    @asynccontextmanager
    async def progress(self, plan: Plan) -> AsyncIterator[None]:
        """Show how far the run of a plan has come, while the context lasts."""
        yield

    async def publish(self, verdict: Verdict) -> None:
        """Show a verdict, its reasons and its numbers."""
