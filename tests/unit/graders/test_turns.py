"""Graders for each turn of a conversation."""

from typing import Any

import pytest

from passgate.tasks.graders.turns import conversation_evidence, conversation_turns, turn_evidence
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import TrialMetrics
from tests.unit.graders.options import says
from tests.unit.graders.trials import Graded, MakeEvidence, RecordedJudge

NO_JUDGE = {"assertions": [{"name": "judge", "type": "llm_grader", "prompt": "Is it true?"}]}
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
    *(user("one"), agent("thinking", "look"), agent("Alice"), user("two"), agent("Bob", "write")),
    *(user("three"), agent("Carol")),
)


def asks(**grader: Any) -> dict[str, Any]:
    return {"assertions": [grader]}


@pytest.fixture
def talk(graded: Graded) -> Graded:
    """The grade of a conversation by the graders of its turns."""

    async def ask(transcript: Transcript, *turns: dict[str, Any], of_trial: Any = None, **fields: Any) -> Any:
        options = {"type": "turns", "name": "talk", "turns": turns, **fields}
        metrics = TrialMetrics(total_tokens=999, wall_time_seconds=9)
        return await graded(options, transcript, metrics=metrics, **(of_trial or {}))

    return ask


LOOKED = asks(type="tool_used", tools=["look"])
FEW_TOKENS = asks(type="token_usage", max_total=110)
WEIGHED = {"assertions": [*says("Alice", weight=3)["assertions"], *says("Rome")["assertions"]]}
NO_ROME_THERE = says("Rome", negate=True)


@pytest.mark.parametrize(
    ("transcript", "turns", "scores"),
    [
        (THREE, [says("Alice"), says("Bob"), says("Carol")], [1, 1, 1]),
        (THREE, [says("Bob"), says("Alice"), says("thinking")], [0, 0, 0]),
        *((THREE, [WEIGHED], [3 / 4]), (THREE, [LOOKED, LOOKED], [1, 0]), (THREE, [FEW_TOKENS, FEW_TOKENS], [0, 1])),
        (conversation(user("one"), agent("Alice")), [says("Alice"), NO_ROME_THERE], [1, 0]),
        (
            conversation(user("one"), user("two"), agent("Bob"), user("three")),
            [says("Bob"), says("Bob"), NO_ROME_THERE],
            [0, 1, 0],
        ),
        (conversation(agent("Alice")), [says("Alice")], [1]),
        (Transcript(output="Alice", complete=False), [says("Alice")], [1]),
        (conversation(user("one"), agent("working", "look"), output="Alice"), [says("Alice")], [1]),
    ],
    ids=[
        *["its own answer", "no other answer", "weights", "its own calls", "its own tokens", "a turn that never came"],
        *["a turn without an answer", "an answer alone", "an answer without messages", "the final answer"],
    ],
)
async def test_each_turn_is_graded_by_itself(transcript: Transcript, turns: Any, scores: Any, talk: Graded) -> None:
    found = await talk(transcript, *turns)
    assert [member.score for member in found.members] == scores
    assert [member.name for member in found.members] == [f"turn-{place + 1}" for place in range(len(scores))]
    assert (found.score, found.passed) == (sum(scores) / len(scores), scores == [1] * len(scores))


@pytest.mark.parametrize(("aggregation", "score"), [("mean", 1 / 2), ("min", 0), ("max", 1)])
async def test_how_turns_become_one_score(aggregation: str, score: float, talk: Graded) -> None:
    found = await talk(THREE, says("Alice"), says("Rome"), {}, aggregation=aggregation)
    assert (found.score, found.passed) == (score, score == 1)


async def test_after_a_turn_that_did_not_pass_the_rest_has_nothing(talk: Graded) -> None:
    found = await talk(THREE, says("Rome"), says("Bob"), says("Carol"), on_turn_failure="stop", aggregation="max")
    assert found.score == 0
    assert [member.checks[0].message for member in found.members[1:]] == ["turn-1 did not pass", "turn-2 did not pass"]
    assert (await talk(THREE, says("Alice"), says("Rome"), says("Carol"), on_turn_failure="stop")).score == 1 / 3
    assert (await talk(THREE, says("Rome"), says("Bob"), says("Carol"))).score == 2 / 3


async def test_a_turn_that_never_came_about_says_so(talk: Graded) -> None:
    found = await talk(conversation(user("one"), agent("Alice")), says("Alice"), NO_ROME_THERE)
    assert found.members[1].checks[0].message == "the agent did not answer this turn"


async def test_a_turn_has_its_own_expected_output(talk: Graded) -> None:
    field = {"type": "field_accuracy", "fields": [{"path": "name", "required": True}]}
    transcript = conversation(user("one"), agent('{"name": "Alice"}'), user("two"), agent('{"name": "Bob"}'))
    turns = [{"assertions": [field], "expected_output": {"name": name}} for name in ("Alice", "Eve")]
    found = await talk(transcript, *turns, of_trial={"expected_output": {"name": "Eve"}})
    assert [member.score for member in found.members] == [1, 0]


async def test_the_judge_sees_what_was_said_before(talk: Graded) -> None:
    judge = RecordedJudge('{"score": 1, "assertions": [], "reasoning": "fine"}')
    found = await talk(THREE, {}, NO_JUDGE, of_trial={"judge": judge})
    assert (found.score, found.usage.tokens_in) == (1, 10)
    asked = "\n".join(message.content for message in judge.requests[0].messages)
    assert all(word in asked for word in ("one", "Alice", "two", "Bob"))
    assert "Carol" not in asked


@pytest.mark.parametrize("told", [[user("zero"), agent("Zoe"), user("one")], [user("zero Zoe one")]])
async def test_messages_of_the_task_come_before_the_first_turn(told: list[Message], talk: Graded) -> None:
    said = [("system", "Be kind."), ("user", "zero"), ("assistant", "Zoe"), ("user", "one")]
    messages = tuple(TaskMessage(role=role, content=content) for role, content in said)  # type: ignore[arg-type]
    transcript = conversation(*told, agent("Alice"), user("two"), agent("Bob"))
    assert (await talk(transcript, says("Alice"), says("Bob"), of_trial={"messages": messages})).score == 1


async def test_the_whole_conversation_counts_as_one_turn_more(talk: Graded) -> None:
    asked = says("user: one\n\nassistant: thinking", "user: three")["assertions"]
    found = await talk(THREE, says("Rome"), conversation=asked)
    assert [(member.name, member.score) for member in found.members] == [("turn-1", 0), ("conversation", 1)]
    assert found.score == 1 / 2


async def test_what_is_required_in_a_turn_is_fatal(talk: Graded) -> None:
    found = await talk(THREE, says("Alice"), says("Rome", required=True), aggregation="max")
    assert (found.passed, found.fatal) == (False, "turn-2: Rome: required, but its score is 0: " + NO_ROME)


@pytest.mark.parametrize(
    ("turns", "error", "members"),
    [
        ([{}, {}], "talk has nothing to check: no turn has graders", 0),
        ([says("Alice"), NO_JUDGE], "turn-2: judge: no judge is configured", 2),
        ([asks(type="latency", threshold=10_000)], "turn-1: latency: ", 1),
    ],
    ids=["no graders", "no judge", "a turn has no known duration"],
)
async def test_a_turn_that_was_not_measured_is_an_error(turns: Any, error: str, members: int, talk: Graded) -> None:
    found = await talk(THREE, *turns)
    assert found.error.startswith(error)
    assert len(found.members) == members


async def test_a_certain_fail_goes_before_a_turn_that_was_not_measured(talk: Graded) -> None:
    found = await talk(THREE, NO_JUDGE, says("Rome"), aggregation="min")
    assert (found.score, found.error) == (0, None)


async def test_after_a_turn_that_was_not_measured_nothing_is_known_with_stop(talk: Graded) -> None:
    found = await talk(THREE, NO_JUDGE, says("Bob"), on_turn_failure="stop", aggregation="max")
    assert found.error is not None
    assert found.members[1].error == "turn-1 was not measured"


def test_a_turn_is_a_trial_and_so_is_the_whole_conversation(make_evidence: MakeEvidence) -> None:
    told = (Message(role="system", content="Be kind."), user("one"), agent("Alice", "look"), user("two"))
    transcript = conversation(*told, agent("", "write"), agent("Bob"), output="Bob.", usage=Usage(tokens_in=500))
    evidence = make_evidence(transcript=transcript, prompt="one", expected_output="all of it")
    second = turn_evidence(evidence, conversation_turns(evidence.task, transcript)[1], {"name": "Bob"})
    assert ([call.tool for call in second.transcript.tool_calls], second.transcript.output) == (["write"], "Bob.")
    assert [message.text for message in second.task.messages] == ["Be kind.", "one", "Alice", "two"]
    assert second.task.prompt == "@[System]:\nBe kind.\n\n@[User]:\none\n\n@[Assistant]:\nAlice\n\n@[User]:\ntwo"
    assert (second.task.expected_output, second.task.reference_answer) == ({"name": "Bob"}, '{\n  "name": "Bob"\n}')
    assert second.transcript.whole_usage == Usage(tokens_in=200, tokens_out=20)
    metrics = second.metrics
    assert (metrics.total_tokens, metrics.steps, metrics.tool_call_count) == (220, 2, 1)
    assert metrics.wall_time_seconds is None
    whole = conversation_evidence(evidence).transcript
    assert whole.output == "system: Be kind.\n\nuser: one\n\nassistant: Alice\n\nuser: two\n\nassistant: Bob"
    assert [call.tool for call in whole.tool_calls] == ["look", "write"]
