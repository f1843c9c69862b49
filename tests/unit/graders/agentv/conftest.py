"""Evidence of a task with `compat: agentv`."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.task import Scoring


@pytest.fixture
def agentv_evidence(make_evidence: Callable[..., Evidence]) -> Callable[..., Evidence]:
    """As `make_evidence`; `task` is what the task says beside that."""

    def make(*, task: dict[str, Any] | None = None, **fields: Any) -> Evidence:
        evidence = make_evidence(**fields)
        compat = {"scoring": Scoring(compat="agentv"), **(task or {})}
        return dataclasses.replace(evidence, task=evidence.task.model_copy(update=compat))

    return make
