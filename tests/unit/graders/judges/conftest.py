"""An answer marked by a judge whose replies are known."""

from typing import Any

import pytest

from passgate.tasks.model.grade import Grade, JudgeRequest
from passgate.tasks.model.transcript import Transcript
from tests.unit.graders.trials import Graded, RecordedJudge, said


@pytest.fixture
def judged(graded: Graded) -> Graded:
    """The grade that a judge gives with these replies, and what it was asked."""

    async def ask(
        options: Any, *replies: str, answer: Transcript | str = "Paris", votes: int = 1, **trial: Any
    ) -> tuple[Grade, list[JudgeRequest]]:
        judge = RecordedJudge(*replies, votes=votes)
        transcript = said(answer) if isinstance(answer, str) else answer
        return await graded(options, transcript, judge=judge, **trial), judge.requests

    return ask
