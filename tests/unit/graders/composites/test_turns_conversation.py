"""One turn of a conversation as if it were a trial."""

from passgate.tasks.graders.composites.turns import evidence_of_conversation, evidence_of_turn, turns_of
from passgate.tasks.graders.interface import Evidence
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from tests.unit.graders.trials import MakeEvidence

USED = Usage(tokens_in=10, tokens_out=1)
TALK = Transcript(
    messages=(
        Message(role="system", content="Be kind."),
        Message(role="user", content="one"),
        Message(role="assistant", content="Alice", tool_calls=(ToolCall(tool="look"),), usage=USED),
        Message(role="user", content="two"),
        Message(role="assistant", tool_calls=(ToolCall(tool="write"),), usage=USED),
        Message(role="assistant", content="Bob", usage=USED),
    ),
    output="Bob.",
    usage=Usage(tokens_in=500, tokens_out=50, cost_usd=1),
    wall_time_seconds=9,
)


def turn(make_evidence: MakeEvidence, number: int) -> Evidence:
    evidence = make_evidence(transcript=TALK, prompt="one", expected_output="all of it")
    return evidence_of_turn(evidence, turns_of(evidence.task, TALK)[number], {"name": "Bob"})


def test_a_turn_is_what_the_agent_did_upon_one_message(make_evidence: MakeEvidence) -> None:
    first, second = turn(make_evidence, 0).transcript, turn(make_evidence, 1).transcript
    assert ([call.tool for call in first.tool_calls], first.output) == (["look"], "Alice")
    assert ([call.tool for call in second.tool_calls], second.output) == (["write"], "Bob.")


def test_a_turn_is_asked_for_with_all_that_was_said_before(make_evidence: MakeEvidence) -> None:
    task = turn(make_evidence, 1).task
    assert [message.text for message in task.messages] == ["Be kind.", "one", "Alice", "two"]
    assert task.prompt == "@[System]:\nBe kind.\n\n@[User]:\none\n\n@[Assistant]:\nAlice\n\n@[User]:\ntwo"
    assert (task.expected_output, task.reference_answer) == ({"name": "Bob"}, '{\n  "name": "Bob"\n}')


def test_a_turn_is_measured_by_itself(make_evidence: MakeEvidence) -> None:
    found = turn(make_evidence, 1)
    assert found.transcript.whole_usage == Usage(tokens_in=20, tokens_out=2)
    assert (found.metrics.total_tokens, found.metrics.steps, found.metrics.tool_call_count) == (22, 2, 1)
    assert found.metrics.wall_time_seconds is None


def test_the_whole_conversation_is_a_paragraph_per_message(make_evidence: MakeEvidence) -> None:
    found = evidence_of_conversation(make_evidence(transcript=TALK)).transcript
    assert found.output == "system: Be kind.\n\nuser: one\n\nassistant: Alice\n\nuser: two\n\nassistant: Bob"
    assert [call.tool for call in found.tool_calls] == ["look", "write"]
