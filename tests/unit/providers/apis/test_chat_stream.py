"""Streamed replies of chat completions on their way to the agent."""

import openai
import pytest
from tests.provider_apis.chat import (
    API,
    BOTH,
    CALLED,
    DELETE,
    READ,
    TEXT,
    TWO_CALLS,
    USAGE_CHUNK,
    USED,
    accumulated,
    called,
    chunk,
    piece,
)
from tests.provider_streams import DONE, Json, documents, event, passed, refusing, unnamed

from passgate.tasks.providers.exchange import ApiFormatError, AskedCall


def calls_in(output: bytes) -> list[Json]:
    """The pieces of calls that the agent gets."""
    return [entry for one in documents(output) for entry in one["choices"][0]["delta"].get("tool_calls", [])]


CUSTOM = [
    chunk({"tool_calls": [{"index": 0, "id": "call_c", "type": "custom"}]}),
    *(chunk({"tool_calls": [{"index": 0, "custom": one}]}) for one in ({"name": "patch"}, {"input": "*** Begin"})),
    chunk({"tool_calls": [{"index": 0, "custom": {"input": " Patch"}}]}),
]
OTHER_IDS = [called(0, '{"path": ', "random-1", "read"), called(0, '"a"}', "random-2")]
EMPTY = AskedCall("b", "delete", {})


class TestStream:
    def test_text_goes_on_at_once_byte_for_byte(self) -> None:
        stream = API.stream(BOTH, refusing())
        assert not stream.started
        for document in TEXT:
            assert not stream.ended
            sent = event(document)
            assert stream.feed(sent) == sent
        assert (stream.started, stream.ended, stream.characters) == (True, True, len("Hello there"))
        assert stream.feed(event(USAGE_CHUNK) + DONE) == event(USAGE_CHUNK) + DONE
        assert stream.reply.text == "Hello there"
        assert (stream.reply.usage, stream.reply.model) == (USED, "gpt-4o-mini")

    def test_it_has_not_started_before_the_model_says_something(self) -> None:
        stream = API.stream({}, refusing())
        stream.feed(b": OPENROUTER PROCESSING\n\n" + event(TEXT[0]))
        assert not stream.started
        stream.feed(event(chunk({"reasoning_content": "Hm"})))
        assert stream.started
        assert (stream.reply.text, stream.characters) == ("", 2)

    def test_a_chunk_without_choices_or_usage_goes_on(self) -> None:
        filtered = {**chunk({}), "choices": [], "prompt_filter_results": []}
        assert passed(API, unnamed([filtered, *TEXT]), refusing())[0] == unnamed([filtered, *TEXT])

    def test_calls_are_held_back_until_they_are_whole_and_asked_about_once(self) -> None:
        withheld = refusing()
        stream = API.stream({}, withheld)
        assert [stream.feed(event(document)) for document in TWO_CALLS[:-1]] == [b""] * 5
        assert stream.started
        assert withheld.asked == []
        assert stream.reply.calls == ()
        assert stream.feed(event(TWO_CALLS[-1])) == b"".join(map(event, TWO_CALLS))
        assert stream.feed(DONE) == DONE
        assert withheld.asked == [READ, DELETE]
        assert stream.reply.calls == (READ, DELETE)
        assert stream.characters == len('{"path": "a"}{"path": "b"}')

    @pytest.mark.parametrize(("refused", "left"), [("delete", READ), ("read", DELETE)])
    def test_the_calls_that_are_left_are_counted_from_0(self, refused: str, left: AskedCall) -> None:
        output, stream = passed(API, unnamed(TWO_CALLS), refusing(refused))
        assert output.endswith(DONE)
        final = accumulated(output).choices[0]
        assert final.finish_reason == "tool_calls"
        (call,) = final.message.tool_calls
        assert (call.id, call.function.name, call.index) == (left.call_id, left.tool, 0)
        assert call.function.arguments == f'{{"path": "{left.arguments["path"]}"}}'
        assert stream.reply.calls == (READ, DELETE)

    def test_text_beside_a_call_that_is_taken_out_or_after_it_stays(self) -> None:
        begun, end = chunk({"role": "assistant", "content": "One "}), chunk({"content": "three"})
        mixed = [begun, called(0, "{}", "call_b", "delete", content="two "), end, CALLED]
        output, _ = passed(API, unnamed(mixed), refusing("delete"))
        final = accumulated(output).choices[0]
        assert (final.finish_reason, final.message.content, final.message.tool_calls) == ("stop", "One two three", None)
        assert passed(API, unnamed(mixed), refusing())[0] == unnamed(mixed)
        calls = [called(0, "{}", "call_b", "delete"), chunk({"content": "Done."}, "tool_calls")]
        output, _ = passed(API, unnamed(calls), refusing("delete"))
        assert [one["choices"][0]["delta"] for one in documents(output)] == [{"content": "Done."}]

    def test_a_legacy_call_is_taken_out(self) -> None:
        legacy = [
            chunk({"role": "assistant", "content": None, "function_call": {"name": "delete", "arguments": ""}}),
            chunk({"function_call": {"arguments": '{"path":'}}),
            chunk({"function_call": {"arguments": '"b"}'}}),
            chunk({}, "function_call"),
        ]
        withheld = refusing("delete")
        output, _ = passed(API, unnamed(legacy), withheld)
        assert withheld.asked == [AskedCall("delete", "delete", {"path": "b"})]
        assert b"function_call" not in output
        assert passed(API, unnamed(legacy), refusing())[0] == unnamed(legacy)

    @pytest.mark.parametrize("index", [0, None])
    def test_calls_of_servers_that_do_not_count_are_told_apart_by_id(self, index: int | None) -> None:
        first = [called(index, '{"path": ', "call_a", "read"), called(index, '"a"}')]
        second = [called(index, '{"path": ', "call_b", "delete"), called(index, '"b"}')]
        withheld = refusing("read")
        output, _ = passed(API, unnamed([*first, *second, CALLED]), withheld)
        assert withheld.asked == [READ, DELETE]
        left = calls_in(output)
        assert [entry.get("id") for entry in left] == ["call_b", None]
        assert "".join(entry["function"]["arguments"] for entry in left) == '{"path": "b"}'
        assert all(entry.get("index") == index for entry in left)

    def test_an_index_of_which_a_call_is_left_is_still_counted(self) -> None:
        two = [called(0, '{"path": "a"}', "call_a", "read"), called(0, '{"path": "b"}', "call_b", "delete")]
        output, _ = passed(API, unnamed([*two, called(1, "{}", "call_c", "write"), CALLED]), refusing("read"))
        assert [(entry["index"], entry["id"]) for entry in calls_in(output)] == [(0, "call_b"), (1, "call_c")]

    @pytest.mark.parametrize(
        ("pieces", "asked"),
        [
            pytest.param(CUSTOM, [AskedCall("call_c", "patch", {"input": "*** Begin Patch"})], id="custom tool"),
            pytest.param(OTHER_IDS, [AskedCall("random-1", "read", {"path": "a"})], id="each piece has another id"),
            pytest.param([called(0, "", "b", "dele"), called(0, "", None, "te")], [EMPTY], id="name in pieces"),
            pytest.param([called(1, "", "b", "delete"), called(1, "{}", "b", "delete")], [EMPTY], id="name again"),
        ],
    )
    def test_however_a_call_is_put_into_pieces_it_is_asked_about(
        self, pieces: list[Json], asked: list[AskedCall]
    ) -> None:
        withheld = refusing()
        passed(API, unnamed([*pieces, CALLED]), withheld)
        assert withheld.asked == asked

    def test_calls_of_servers_that_do_not_count_are_told_apart_by_name(self) -> None:
        withheld = refusing("delete")
        calls = [called(0, "{}", None, name) for name in ("read", "delete")]
        output, _ = passed(API, unnamed([*calls, CALLED]), withheld)
        assert [call.tool for call in withheld.asked] == ["read", "delete"]
        assert b"delete" not in output

    def test_calls_that_nothing_finishes_are_whole_at_the_end(self) -> None:
        withheld = refusing("delete")
        output, stream = passed(API, unnamed(TWO_CALLS[:-1]), withheld)
        assert withheld.asked == [READ, DELETE]
        assert stream.ended
        assert b"delete" not in output

    def test_a_call_after_the_reason_to_finish_is_held_back_too(self) -> None:
        withheld = refusing("delete")
        stream = API.stream({}, withheld)
        stream.feed(b"".join(map(event, TWO_CALLS)))
        assert stream.feed(event(called(1, "{}", "call_c", "delete"))) == b""
        assert stream.feed(DONE) == DONE
        assert [call.call_id for call in withheld.asked] == ["call_a", "call_b", "call_c"]

    @pytest.mark.parametrize("added", [{"tool_calls": [piece(1, "more")]}, {"function_call": {"arguments": "more"}}])
    def test_what_is_added_to_a_call_that_was_decided_on_is_unreadable(self, added: Json) -> None:
        stream = API.stream({}, refusing())
        legacy = chunk({"function_call": {"name": "read", "arguments": "{}"}})
        stream.feed(b"".join(map(event, [legacy, *TWO_CALLS])))
        assert stream.feed(event(chunk(added))) == b""
        with pytest.raises(ApiFormatError, match="name: is missing"):
            stream.feed(DONE)

    def test_a_call_that_never_ends_is_not_collected_for_ever(self) -> None:
        stream = API.stream({}, refusing())
        endless = event(called(0, "a" * 2**20, "call_a", "read"))
        with pytest.raises(ApiFormatError, match="the tool calls of the reply are larger than"):
            stream.feed(endless * 40)

    @pytest.mark.parametrize(
        ("sent", "message"),
        [
            (b"data: {\n\n", "not JSON"),
            (b"data: \xff\n\n", "not JSON"),
            (b"data: " + b"[" * 100_000 + b"\n\n", "not JSON"),
            (b"data: []\n\n", "not a JSON object"),
            (event({"error": {"message": "Overloaded", "code": 529}}), "the provider says: Overloaded"),
            (event({"choices": {}}), "choices: is an object, not a list"),
            (event({"choices": [7]}), r"choices\[0\]: is a number"),
            (event({"choices": [{"index": 1, "delta": {}}]}), "choices: there is more than the one"),
            (event({"choices": [{"index": []}]}), r"choices\[0\].index: is a list"),
            (event({"choices": [{"delta": 7}]}), r"choices\[0\].delta: is a number"),
            (event(chunk({"content": {}})), r"choices\[0\].delta.content: is an object"),
            (event(chunk({"tool_calls": [7]})), r"tool_calls\[\]: is a number"),
            (event(chunk({"tool_calls": [{"index": "0"}]})), r"tool_calls\[\].index: is a text"),
            (event(chunk({"tool_calls": [piece(0, 7)]})), "tool_calls.*: is a number, not a text"),  # type: ignore[arg-type]
            (event(chunk({"tool_calls": [piece(0, "{}")]}, "tool_calls")), "function.name: is missing"),
            (event(chunk({}, usage=7)), "usage: is a number"),
        ],
    )
    def test_what_is_no_stream_of_this_api_is_unreadable(self, sent: bytes, message: str) -> None:
        with pytest.raises(ApiFormatError, match=message):
            API.stream({}, refusing()).feed(sent)

    def test_halves_of_a_character_in_two_pieces_are_joined(self) -> None:
        stream = API.stream({}, refusing())
        stream.feed(event(chunk({"content": "\ud83d"})) + event(chunk({"content": "\ude00"})))
        assert stream.reply.text == "\U0001f600"


class TestCut:
    def test_a_text_ends_as_one_that_reached_its_limit(self) -> None:
        stream = API.stream({}, refusing())
        output = stream.feed(b"".join(map(event, TEXT[:-1]))) + stream.cut()
        assert output.endswith(DONE)
        with pytest.raises(openai.LengthFinishReasonError) as raised:
            accumulated(output)
        final = raised.value.completion
        assert final.choices[0].message.content == "Hello there"
        assert documents(output)[-1] == chunk({}, "length")

    def test_before_anything_it_names_the_model_that_was_asked_for_and_after_the_end_adds_nothing(
        self,
    ) -> None:
        (only,) = documents(API.stream({"model": "gpt-4.1"}, refusing()).cut())
        assert (only["model"], only["choices"][0]["finish_reason"]) == ("gpt-4.1", "length")
        _, stream = passed(API, unnamed(TEXT), refusing())
        assert stream.cut() == b""
