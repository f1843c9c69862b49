"""Benches on which trials are really run, with functions as agents."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.execution.resources import TrialResources
from passgate.tasks.grade import grade
from passgate.tasks.history.masking import Masker
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.sandboxes.workbench import Workbench
from tests.function_agent import FunctionAgent

Function = Callable[[Attempt], Any]
MakeBench = Callable[..., TrialResources]


@contextmanager
def benches(suites: Path) -> Iterator[MakeBench]:
    """Make benches for functions as agents: with a new suites folder, and closed at the end."""
    suites.mkdir()
    with Workbench(suites, processes=2) as workbench:

        def bench(
            function: Function, *, retries: int = 1, secrets: tuple[str, ...] = (), judge: Any = None
        ) -> TrialResources:
            return TrialResources(
                agent=FunctionAgent(function),
                workbench=workbench,
                meter=None,
                cost_cap=CostCap(),
                judge=judge,
                suites_folder=suites,
                masker=Masker(secrets),
                error_retries=retries,
                grade=grade,
            )

        yield bench


def says(answer: Any) -> Function:
    return lambda attempt: answer
