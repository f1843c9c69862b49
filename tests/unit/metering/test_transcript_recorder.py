"""Transcripts, written down from calls that repeat the whole conversation each time."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.metering.transcript_recorder import TranscriptRecorder, completed
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript, Usage
from passgate.tasks.providers.exchange import AskedCall, InputMessage, ModelReply, ModelRequest, ToolAnswer

USED = Usage(tokens_in=5, tokens_out=2)


def asked(*said: InputMessage, answers: tuple[ToolAnswer, ...] = (), continues: bool = False) -> ModelRequest:
    return ModelRequest("m", False, None, said, answers, continues, 100)


def user(text: str) -> InputMessage:
    return InputMessage("user", text)


RULES, GO = InputMessage("system", "Be brief."), user("Go on.")


def call(number: int, **arguments: Any) -> AskedCall:
    return AskedCall(f"call-{number}", "find", arguments)


def exchange(recorder: TranscriptRecorder, request: ModelRequest, reply: ModelReply, at: float = 0.0) -> None:
    recorder.ask(request, at)
    recorder.answer(reply, USED, asked_at=at, answered_at=at + 0.5, first_token_at=at + 0.125)


def test_a_conversation_with_a_tool() -> None:
    recorder = TranscriptRecorder()
    answers = (ToolAnswer("call-1", "here", is_error=True),)
    exchange(recorder, asked(RULES, user("Where?")), ModelReply(calls=(call(1, q="x"),), model="m"))
    exchange(recorder, asked(RULES, user("Where?"), answers=answers), ModelReply("There."), at=2.0)
    found = ToolCall(tool="find", arguments={"q": "x"}, result="here", is_error=True, duration_ms=1500.0)
    step = {"role": "assistant", "usage": USED, "latency_ms": 500.0, "time_to_first_token": 0.125}
    assert recorder.transcript() == Transcript(
        messages=(
            Message(role="system", content="Be brief."),
            Message(role="user", content="Where?"),
            Message(**step, tool_calls=(found,), model="m"),
            Message(**step, content="There."),
        ),
        output="There.",
    )


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        pytest.param([asked(GO), asked(GO, GO)], ["Go on.", "1", "Go on.", "2"], id="said twice"),
        pytest.param([asked(GO), asked(GO, continues=True)], ["Go on.", "1", "Go on.", "2"], id="kept by the provider"),
        pytest.param(
            [asked(RULES, GO), asked(RULES, GO, continues=True)],
            ["Be brief.", "Go on.", "1", "Go on.", "2"],
            id="instructions repeated",
        ),
    ],
)
def test_what_is_new_in_a_request_is_another_message(requests: list[ModelRequest], said: list[str]) -> None:
    recorder = TranscriptRecorder()
    for number, request in enumerate(requests, start=1):
        exchange(recorder, request, ModelReply(str(number)))
    assert [message.content for message in recorder.transcript().messages] == said


def test_a_call_that_is_tried_again_is_asked_once() -> None:
    recorder = TranscriptRecorder()
    recorder.ask(asked(user("Hello?")), 0.0)
    exchange(recorder, asked(user("Hello?")), ModelReply("Yes."))
    assert [message.content for message in recorder.transcript().messages] == ["Hello?", "Yes."]


def test_ids_that_a_model_uses_again_belong_to_the_calls_in_their_order() -> None:
    recorder = TranscriptRecorder()
    exchange(recorder, asked(user("a")), ModelReply(calls=(call(1, n=1),)))
    first = ToolAnswer("call-1", "one", is_error=None)
    exchange(recorder, asked(user("a"), answers=(first,)), ModelReply(calls=(call(1, n=2),)))
    second = ToolAnswer("call-1", "two", is_error=None)
    exchange(recorder, asked(user("a"), answers=(first, second)), ModelReply("done"))
    assert [found.result for found in recorder.transcript().tool_calls] == ["one", "two"]


def test_calls_side_by_side_have_no_duration_and_no_error_where_the_api_does_not_say() -> None:
    recorder = TranscriptRecorder()
    exchange(recorder, asked(user("a")), ModelReply(calls=(call(1), call(2))))
    answers = ToolAnswer("call-1", "x", is_error=None), ToolAnswer("call-2", "x", is_error=False)
    recorder.ask(asked(user("a"), answers=answers), 9.0)
    found = recorder.transcript().tool_calls
    assert [(one.is_error, one.duration_ms) for one in found] == [(None, None), (False, None)]


def test_a_refused_call_is_recorded_and_has_no_result() -> None:
    recorder = TranscriptRecorder()
    recorder.ask(asked(user("a")), 0.0)
    reply = ModelReply(calls=(call(1, to="x"), call(2)))
    recorder.answer(reply, USED, asked_at=0, answered_at=1, first_token_at=None, refused=frozenset({0}))
    refused, allowed = recorder.transcript().tool_calls
    assert (refused.refused, refused.arguments, allowed.refused) == (True, {"to": "x"}, False)


def test_what_is_used_beside_the_steps_is_in_the_whole() -> None:
    recorder = TranscriptRecorder()
    exchange(recorder, asked(user("a")), ModelReply("b"))
    assert recorder.transcript().usage == Usage()
    recorder.use(Usage(tokens_in=10, tokens_out=0))
    assert recorder.transcript().usage.tokens_in == 15
    assert recorder.transcript().usage.cost_usd is None


def test_the_agents_own_answer_and_end_complete_what_was_seen() -> None:
    seen = Transcript(messages=(Message(role="assistant", content="raw"),), output="raw")
    reported = Transcript(output="polished", end=EndReason.CRASHED, detail="exit code 1", complete=False)
    whole = completed(seen, reported)
    assert whole == reported.model_copy(update={"messages": seen.messages, "complete": True})
    assert completed(seen, Transcript()).output == "raw"


def calling(*calls: ToolCall, complete: bool = True) -> Transcript:
    """A transcript of one step."""
    return Transcript(messages=(Message(role="assistant", tool_calls=calls),), complete=complete)


def test_results_are_the_agents_where_it_reports_the_call_fitss() -> None:
    seen = calling(ToolCall(tool="a"), ToolCall(tool="b"))
    told = (ToolCall(tool="a", is_error=True, result="no"), ToolCall(tool="b", result="yes", duration_ms=3.0))
    assert completed(seen, calling(*told)).tool_calls == told
    refused, known = ToolCall(tool="x", refused=True), ToolCall(tool="a", is_error=False, result=1)
    assert completed(calling(ToolCall(tool="a"), refused), calling(known)).tool_calls == (known, refused)
    assert completed(seen, calling(ToolCall(tool="a", is_error=True))) == seen


def test_an_agent_that_finds_its_tools_in_the_text_knows_them_better() -> None:
    steps = (Message(role="assistant", content="CALL find", usage=USED, latency_ms=5.0, model="m"),) * 2
    seen = Transcript(messages=(Message(role="user", content="Go."), *steps), output="CALL find")
    told = ToolCall(tool="find", result=1, is_error=True)
    mine = (Message(role="user", content="Go."), Message(role="assistant", content="CALL find", tool_calls=(told,)))
    reported = Transcript(messages=(*mine, Message(role="assistant", content="Found.")), output="Found.")
    whole = completed(seen, reported)
    assert whole.tool_calls == (told,)
    assert whole.output == "Found."
    assert whole.usage == Usage(tokens_in=10, tokens_out=4)
    assert [(step.usage, step.latency_ms, step.model) for step in whole.steps] == [(USED, 5.0, "m")] * 2
    one_step = completed(seen, reported.model_copy(update={"messages": mine}))
    assert (one_step.usage, one_step.steps[0].usage) == (Usage(tokens_in=10, tokens_out=4), Usage())


DROP, LOOK, READ = (ToolCall(tool=tool) for tool in ("drop", "look", "read"))


@pytest.mark.parametrize(
    ("seen", "reported"),
    [
        pytest.param(calling(DROP), calling(LOOK, READ), id="leaves it out"),
        pytest.param(calling(DROP), calling(DROP, LOOK, READ, complete=False), id="not whole"),
        pytest.param(calling(ToolCall(tool="drop", refused=True)), calling(DROP, LOOK, READ), id="denies the refusal"),
    ],
)
def test_a_report_that_says_less_counts_for_less_than_what_was_seen(seen: Transcript, reported: Transcript) -> None:
    assert completed(seen, reported).tool_calls == seen.tool_calls


def test_what_a_played_user_costs_stays_with_what_the_user_said() -> None:
    said = (Message(role="user", content="Hi."), Message(role="assistant"), Message(role="user", content="Bye."))
    cost = Usage(tokens_in=9, tokens_out=1, cost_usd=0.5)
    played = Message(role="user", content="Bye.", usage=cost, model="player")
    whole = completed(Transcript(messages=said), Transcript(messages=(said[0], played)))
    assert whole.messages == (*said[:2], played)


@given(st.lists(st.tuples(st.sampled_from(["hello", "go on", "why?"]), st.integers(0, 3)), max_size=12))
def test_however_long_a_conversation_each_thing_is_written_down_once(turns: list[tuple[str, int]]) -> None:
    recorder, said, answers, number = TranscriptRecorder(), (), (), 0
    for text, calls in turns:
        said = (*said, user(text))
        asks = tuple(call(number + offset, turn=number) for offset in range(calls))
        exchange(recorder, asked(*said, answers=answers), ModelReply(text.upper(), calls=asks))
        answers = (*answers, *(ToolAnswer(ask.call_id, ask.call_id, is_error=False) for ask in asks))
        number += calls
    recorder.ask(asked(*said, answers=answers), 0.0)
    transcript = recorder.transcript()
    contents = [message.content for message in transcript.messages]
    assert contents == [content for text, _ in turns for content in (text, text.upper())]
    assert [found.result for found in transcript.tool_calls] == [f"call-{index}" for index in range(number)]
