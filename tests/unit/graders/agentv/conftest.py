"""The same trial graded as AgentV does, and as passgate does where the task does not ask for that."""

from typing import Any

import pytest

from tests.unit.graders.trials import AGENTV, Graded


@pytest.fixture
def compare(graded: Graded) -> Graded:
    """AgentV's grade and passgate's own. The arguments are those of `graded`."""

    async def both(*arguments: Any, **trial: Any) -> tuple[Any, Any]:
        return await graded(*arguments, scoring=AGENTV, **trial), await graded(*arguments, **trial)

    return both


@pytest.fixture
def scores(compare: Graded) -> Graded:
    """AgentV's score and passgate's own."""

    async def both(*arguments: Any, **trial: Any) -> tuple[Any, Any]:
        theirs, ours = await compare(*arguments, **trial)
        return theirs.score, ours.score

    return both
