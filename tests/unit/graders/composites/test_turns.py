"""Graders for each turn of a conversation."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.graders import grade
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Turns
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import TrialMetrics
from tests.unit.graders.trials import MakeEvidence, RecordedJudge

Graded = Callable[..., Any]
NO_JUDGE = {"name": "judge", "type": "llm_grader", "prompt": "Is it true?"}

NO_ROME = "the answer does not contain 'Rome', but must"


def user(text: str) -> Message:
    return Message(role="user", content=text)


def agent(text: str, *calls: str) -> Message:
    used = Usage(tokens_in=100, tokens_out=10)
    return Message(role="assistant", content=text, tool_calls=tuple(ToolCall(tool=call) for call in calls), usage=used)


def conversation(*messages: Message, **fields: Any) -> Transcript:
    output = next((message.content for message in reversed(messages) if message.role == "assistant"), "")
    return Transcript(**{"messages": messages, "output": output, "wall_time_seconds": 9.0, **fields})


THREE = conversation(
    user("one"),
    agent("thinking", "look"),
    agent("Alice"),
    user("two"),
    agent("Bob", "write"),
    user("three"),
    agent("Carol"),
)


def says(*words: str, **fields: Any) -> dict[str, Any]:
    return {"assertions": [{"name": word, "type": "contains", "value": word, **fields} for word in words]}


@pytest.fixture
def graded(make_evidence: MakeEvidence) -> Graded:
    async def ask(transcript: Transcript, *turns: dict[str, Any], about: Any = None, **fields: Any) -> Grade:
        options = Turns.model_validate({"type": "turns", "name": "talk", "turns": turns, **fields})
        metrics = TrialMetrics(total_tokens=999, wall_time_seconds=9)
        return await grade(options, make_evidence(transcript=transcript, metrics=metrics, **(about or {})))

    return ask


async def test_each_turn_is_graded_by_its_own_answer(graded: Graded) -> None:
    found = await graded(THREE, says("Alice"), says("Bob"), says("Carol"))
    assert (found.score, found.passed) == (1, True)
    assert [member.name for member in found.members] == ["turn-1", "turn-2", "turn-3"]
    assert (await graded(THREE, says("Bob"), says("Alice"), says("thinking"))).score == 0


@pytest.mark.parametrize(("aggregation", "score"), [("mean", 1 / 2), ("min", 0), ("max", 1)])
async def test_how_turns_become_one_score(aggregation: str, score: float, graded: Graded) -> None:
    found = await graded(THREE, says("Alice"), says("Rome"), {}, aggregation=aggregation)
    assert (found.score, found.passed) == (score, score == 1)


async def test_the_graders_of_a_turn_count_by_their_weights(graded: Graded) -> None:
    turn = {"assertions": [*says("Alice", weight=3)["assertions"], *says("Rome")["assertions"]]}
    assert (await graded(THREE, turn)).score == 3 / 4


async def test_after_a_turn_that_did_not_pass_the_rest_has_nothing(graded: Graded) -> None:
    found = await graded(THREE, says("Rome"), says("Bob"), says("Carol"), on_turn_failure="stop", aggregation="max")
    assert found.score == 0
    assert [member.checks[0].message for member in found.members[1:]] == ["turn-1 did not pass", "turn-2 did not pass"]
    assert (await graded(THREE, says("Alice"), says("Rome"), says("Carol"), on_turn_failure="stop")).score == 1 / 3
    assert (await graded(THREE, says("Rome"), says("Bob"), says("Carol"))).score == 2 / 3


async def test_a_turn_that_never_came_about_has_nothing(graded: Graded) -> None:
    absent = {"assertions": [{"type": "contains", "value": "Rome", "negate": True}]}
    found = await graded(conversation(user("one"), agent("Alice")), says("Alice"), absent)
    assert found.score == 1 / 2
    assert found.members[1].checks[0].message == "the agent did not answer this turn"


async def test_a_turn_without_an_answer_is_not_given_the_next_one(graded: Graded) -> None:
    turns = [says("Bob"), says("Bob"), says("Rome", negate=True)]
    found = await graded(conversation(user("one"), user("two"), agent("Bob"), user("three")), *turns)
    assert [member.score for member in found.members] == [0, 1, 0]


async def test_a_turn_sees_its_own_tool_calls_only(graded: Graded) -> None:
    looked = {"assertions": [{"type": "tool_used", "tools": ["look"]}]}
    found = await graded(THREE, looked, looked)
    assert [member.score for member in found.members] == [1, 0]


async def test_a_turn_has_its_own_metrics_and_no_known_duration(graded: Graded) -> None:
    tokens = {"assertions": [{"type": "token_usage", "max_total": 110}]}
    found = await graded(THREE, tokens, tokens)
    assert [member.score for member in found.members] == [0, 1]
    assert (await graded(THREE, {"assertions": [{"type": "latency", "threshold": 10_000}]})).error is not None


async def test_a_turn_has_its_own_expected_output(graded: Graded) -> None:
    field = {"type": "field_accuracy", "fields": [{"path": "name", "required": True}]}
    transcript = conversation(user("one"), agent('{"name": "Alice"}'), user("two"), agent('{"name": "Bob"}'))
    turns = [{"assertions": [field], "expected_output": {"name": name}} for name in ("Alice", "Eve")]
    found = await graded(transcript, *turns, about={"expected_output": {"name": "Eve"}})
    assert [member.score for member in found.members] == [1, 0]


async def test_the_judge_sees_what_was_said_before(graded: Graded) -> None:
    judge = RecordedJudge(json.dumps({"score": 1, "assertions": [], "reasoning": "fine"}))
    found = await graded(THREE, {}, {"assertions": [NO_JUDGE]}, about={"judge": judge})
    assert (found.score, found.usage.tokens_in) == (1, 10)
    asked = "\n".join(message.content for message in judge.requests[0].messages)
    assert all(word in asked for word in ("one", "Alice", "two", "Bob"))
    assert "Carol" not in asked


async def test_messages_of_the_task_come_before_the_first_turn(graded: Graded) -> None:
    messages = (
        TaskMessage(role="system", content="Be kind."),
        TaskMessage(role="user", content="zero"),
        TaskMessage(role="assistant", content="Zoe"),
        TaskMessage(role="user", content="one"),
    )
    transcript = conversation(user("zero"), agent("Zoe"), user("one"), agent("Alice"), user("two"), agent("Bob"))
    assert (await graded(transcript, says("Alice"), says("Bob"), about={"messages": messages})).score == 1
    told_as_one = conversation(user("zero Zoe one"), agent("Alice"), user("two"), agent("Bob"))
    assert (await graded(told_as_one, says("Alice"), says("Bob"), about={"messages": messages})).score == 1


async def test_an_agent_that_only_reports_its_answer_has_one_turn(graded: Graded) -> None:
    assert (await graded(conversation(agent("Alice")), says("Alice"))).score == 1
    assert (await graded(Transcript(output="Alice", complete=False), says("Alice"))).score == 1


async def test_the_last_turn_has_the_final_answer(graded: Graded) -> None:
    transcript = conversation(user("one"), agent("working", "look"), output="Alice")
    assert (await graded(transcript, says("Alice"))).score == 1


async def test_the_whole_conversation_counts_as_one_turn_more(graded: Graded) -> None:
    asked = says("user: one\n\nassistant: thinking", "user: three")["assertions"]
    found = await graded(THREE, says("Rome"), conversation=asked)
    assert [(member.name, member.score) for member in found.members] == [("turn-1", 0), ("conversation", 1)]
    assert found.score == 1 / 2


async def test_what_is_required_in_a_turn_is_fatal(graded: Graded) -> None:
    found = await graded(THREE, says("Alice"), says("Rome", required=True), aggregation="max")
    assert (found.passed, found.fatal) == (False, "turn-2: Rome: required, but its score is 0: " + NO_ROME)


async def test_turns_without_graders_are_an_error(graded: Graded) -> None:
    assert "no turn has graders" in ((await graded(THREE, {}, {})).error or "")


async def test_a_turn_that_was_not_measured_is_an_error(graded: Graded) -> None:
    found = await graded(THREE, says("Alice"), {"assertions": [NO_JUDGE]})
    assert (found.error or "").startswith("turn-2: judge: no judge is configured")
    assert len(found.members) == 2


async def test_a_certain_fail_goes_before_a_turn_that_was_not_measured(graded: Graded) -> None:
    found = await graded(THREE, {"assertions": [NO_JUDGE]}, says("Rome"), aggregation="min")
    assert (found.score, found.error) == (0, None)


async def test_after_a_turn_that_was_not_measured_nothing_is_known_with_stop(graded: Graded) -> None:
    fields = {"on_turn_failure": "stop", "aggregation": "max"}
    found = await graded(THREE, {"assertions": [NO_JUDGE]}, says("Bob"), **fields)
    assert found.error is not None
    assert found.members[1].error == "turn-1 was not measured"
