"""What the pipeline asks of an engine, and the pipeline without one: its verbs are plain functions then."""

from collections.abc import Awaitable, Callable
from typing import ParamSpec, Protocol, TypeVar

from passgate.tasks.model.verdict import Verdict

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[[], Awaitable[T]]  # A verb with its arguments


def work_of(verb: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> Work[T]:
    """A sync verb as an async one."""

    async def work() -> T:
        return verb(*arguments, **options)

    return work


def no_fault(_result: object) -> str:
    """A step whose end is a success."""
    return ""


class Engine(Protocol):
    """Shows a run to those who watch it. Nothing of the verdict comes from it, and its own troubles change nothing."""

    async def step(self, name: str, work: Work[T], run_name: str = "", fault: Callable[[T], str] = no_fault) -> T:
        """Do a step of the pipeline; gives what it gives and raises what it raises.

        It is shown by its own name and that of this run of it. `fault` says why its result is one to look at; an empty
        text where it is not.
        """

    async def publish(self, verdict: Verdict) -> None:
        """Show a verdict, its reasons and its numbers."""


class NoEngine:
    """Does the steps of a pipeline and shows nothing."""

    async def step(self, name: str, work: Work[T], run_name: str = "", fault: Callable[[T], str] = no_fault) -> T:
        return await work()

    async def publish(self, verdict: Verdict) -> None:
        return
