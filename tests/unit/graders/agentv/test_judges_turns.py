"""Turns as AgentV scores them, and what passgate says where it does not ask for that."""

from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Turns
from passgate.tasks.model.task import Scoring
from passgate.tasks.model.transcript import Message, Transcript

MakeEvidence = Callable[..., Evidence]
Compare = Callable[..., Any]
ANSWER = "Hello Alice! Paris."


@pytest.fixture
def compare(make_evidence: MakeEvidence) -> Compare:
    """AgentV's grade and passgate's own, for an agent that says the same every time."""

    async def both(*turns: dict[str, Any], **fields: Any) -> tuple[Grade, Grade]:
        options = Turns.model_validate({"type": "turns", "turns": turns, **fields})
        roles = (("user", "assistant") * len(turns))[: 2 * len(turns)]
        messages = tuple(
            Message(role=role, content=ANSWER if role == "assistant" else f"t{place // 2 + 1}")
            for place, role in enumerate(roles)
        )
        transcript = Transcript(messages=messages, output=ANSWER)
        theirs = make_evidence(transcript=transcript, scoring=Scoring(compat="agentv"))
        return await grade(options, theirs), await grade(options, make_evidence(transcript=transcript))

    return both


def says(word: str, **fields: Any) -> dict[str, Any]:
    return {"assertions": [{"name": word, "type": "contains", "value": word, **fields}]}


WEIGHED = {"assertions": [*says("Alice", weight=3)["assertions"], *says("Rome")["assertions"]]}


@pytest.mark.parametrize(
    ("turns", "fields", "theirs", "ours"),
    [
        ([says("Alice"), says("Rome"), {}], {}, 2 / 3, 1 / 2),
        ([says("Alice"), says("Rome")], {"aggregation": "min"}, 0, 0),
        ([says("Alice"), says("Rome")], {"aggregation": "max"}, 1, 1),
        ([says("Rome"), says("Alice")], {"on_turn_failure": "stop"}, 0, 0),
        ([says("Rome"), {}, {}], {"on_turn_failure": "stop"}, 0, 0),
        ([says("Alice")], {"conversation": says("user: t1")["assertions"]}, 1, 1),
        ([{}], {"conversation": says("user: t2")["assertions"]}, 1 / 2, 0),
        ([WEIGHED], {}, 3 / 4, 3 / 4),
    ],
)
async def test_the_score_of_turns(
    turns: list[dict[str, Any]], fields: dict[str, Any], theirs: float, ours: float, compare: Compare
) -> None:
    found = await compare(*turns, **fields)
    assert [answer.score for answer in found] == pytest.approx([theirs, ours], abs=1e-9)


async def test_what_is_required_in_a_turn_is_that_turns_matter_there(compare: Compare) -> None:
    mixed = {"assertions": [*says("Alice")["assertions"], *says("Rome", required=True)["assertions"]]}
    theirs, ours = await compare(says("Alice"), mixed)
    assert (theirs.score, theirs.fatal) == (1 / 2, "")
    assert ours.fatal


async def test_a_turn_without_graders_passes_there(compare: Compare) -> None:
    theirs, ours = await compare({}, {})
    assert (theirs.score, ours.score) == (1, None)
