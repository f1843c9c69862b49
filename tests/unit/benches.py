"""Benches on which trials are really run, with functions as agents."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.execution.resources import Standstills, TrialResources
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.quotes import Masker
from passgate.tasks.sandboxes.workbench import Workbench
from tests.function_agent import FunctionAgent

Function = Callable[[Attempt], Any]
MakeBench = Callable[..., TrialResources]


@pytest.fixture
def bench(suites: Path) -> Iterator[MakeBench]:
    """Makes benches for functions as agents."""
    with Workbench(suites, processes=2) as workbench:

        def _bench(
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
                standstills=Standstills(),
            )

        yield _bench


def says(answer: Any) -> Function:
    return lambda attempt: answer
