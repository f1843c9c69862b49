"""A task's messages in the shape of chat completions."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.agents.chat_messages import MAX_IMAGE_BYTES, asked_messages
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.messages import MessageCall, TaskMessage


def message(role: str, content: Any = "", **more: Any) -> TaskMessage:
    return TaskMessage.model_validate({"role": role, "content": content, **more})


def asking(*calls: dict[str, Any], content: str = "") -> TaskMessage:
    return message("assistant", content, tool_calls=calls)


def test_texts_stay_texts() -> None:
    texts = [("system", "Be kind."), ("user", "Hello."), ("assistant", "Hi."), ("user", "Go on.")]
    assert asked_messages([message(*text) for text in texts], {}) == [
        {"role": role, "content": content} for role, content in texts
    ]


def test_blocks_of_a_user_are_parts() -> None:
    blocks = [
        {"type": "text", "value": "Look:"},
        {"type": "file", "value": "docs/a.md", "text": "# A"},
        {"type": "json", "value": {"order": 7}},
        {"type": "image", "value": "data:image/png;base64,AAAA"},
        {"type": "image", "value": "https://host/a.png"},
    ]
    (asked,) = asked_messages([message("user", blocks)], {})
    assert asked["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "text", "text": '<file path="docs/a.md">\n# A\n</file>'},
        {"type": "text", "text": '{\n  "order": 7\n}'},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://host/a.png"}},
    ]


def test_blocks_of_others_are_one_text() -> None:
    blocks = [{"type": "text", "value": "a"}, {"type": "image", "value": "b.png"}]
    (asked,) = asked_messages([message("system", blocks)], {})
    assert asked == {"role": "system", "content": "a\n\n[image: b.png]"}


@pytest.mark.parametrize(
    ("name", "kind"), [("a.png", "png"), ("a.JPG", "jpeg"), ("b/a.jpeg", "jpeg"), ("a.gif", "gif"), ("a.webp", "webp")]
)
def test_an_image_is_sent_as_it_is(tmp_path: Path, name: str, kind: str) -> None:
    content = bytes(range(256))
    (tmp_path / "image").write_bytes(content)
    (asked,) = asked_messages([message("user", [{"type": "image", "value": name}])], {name: tmp_path / "image"})
    (part,) = asked["content"]
    head, _, encoded = part["image_url"]["url"].partition(",")
    assert head == f"data:image/{kind};base64"
    assert base64.b64decode(encoded) == content


def _large(file: Path) -> None:
    file.touch()
    os.truncate(file, MAX_IMAGE_BYTES + 1)


@pytest.mark.parametrize(
    ("name", "make", "what"),
    [
        ("a.svg", Path.touch, r"the image a\.svg cannot be sent to a model: known are \.png, \.jpg"),
        ("a.png", _large, r"the image a\.png has more than 5 MiB"),
        ("a.png", os.mkfifo, r"the image a\.png cannot be read"),
        ("a.png", lambda file: file.symlink_to("/etc/hostname"), r"the image a\.png cannot be read"),
        ("a.png", lambda file: None, r"the image a\.png cannot be read"),
    ],
)
def test_an_image_that_cannot_be_sent(tmp_path: Path, name: str, make: Any, what: str) -> None:
    make(tmp_path / name)
    with pytest.raises(MeasurementError, match=what):
        asked_messages([message("user", [{"type": "image", "value": name}])], {name: tmp_path / name})


def test_an_image_of_the_largest_size(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    os.truncate(tmp_path / "a.png", MAX_IMAGE_BYTES)
    assert asked_messages([message("user", [{"type": "image", "value": "a.png"}])], {"a.png": tmp_path / "a.png"})


def test_calls_and_their_answers_by_their_ids() -> None:
    asked = asked_messages(
        [
            asking({"id": "a", "tool": "look", "arguments": {"at": 1}}, {"id": "b", "tool": "look"}, content="I look."),
            message("tool", "second", tool_call_id="b"),
            message("tool", [{"type": "json", "value": 1}], tool_call_id="a"),
        ],
        {},
    )
    assert asked[0]["content"] == "I look."
    assert [(call["id"], call["type"], call["function"]) for call in asked[0]["tool_calls"]] == [
        ("a", "function", {"name": "look", "arguments": '{"at": 1}'}),
        ("b", "function", {"name": "look", "arguments": "{}"}),
    ]
    assert asked[1:] == [
        {"role": "tool", "tool_call_id": "b", "content": "second"},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]


def test_without_ids_an_answer_goes_to_the_call_of_its_tool_else_to_the_first() -> None:
    calls = [{"tool": "look"}, {"tool": "read"}, {"tool": "write"}]
    answers = [message("tool", "r", name="read"), message("tool", "l"), message("tool", "w", tool_call_id="other")]
    asked = asked_messages([asking(*calls), *answers], {})
    ids = [call["id"] for call in asked[0]["tool_calls"]]
    assert len(set(ids)) == 3
    assert [(answer["tool_call_id"], answer["content"]) for answer in asked[1:]] == [
        (ids[1], "r"),
        (ids[0], "l"),
        (ids[2], "w"),
    ]
    assert asked[0]["content"] is None


def test_a_call_without_an_answer_has_its_own_result() -> None:
    calls = [{"id": "a", "tool": "look", "result": {"seen": 1}}, {"id": "b", "tool": "look"}]
    asked = asked_messages(
        [asking(*calls), message("user", "And?"), asking({"id": "c", "tool": "x", "result": "y"})], {}
    )
    assert [(one["role"], one.get("tool_call_id"), one["content"]) for one in asked] == [
        ("assistant", None, None),
        ("tool", "a", '{"seen": 1}'),
        ("tool", "b", ""),
        ("user", None, "And?"),
        ("assistant", None, None),
        ("tool", "c", "y"),
    ]


def test_an_answer_that_nobody_asked_for_is_given_a_call() -> None:
    asked = asked_messages([message("user", "Hm."), message("tool", "found", name="look")], {})
    (call,) = asked[1]["tool_calls"]
    assert (asked[1]["role"], call["function"]) == ("assistant", {"name": "look", "arguments": "{}"})
    assert asked[2] == {"role": "tool", "tool_call_id": call["id"], "content": "found"}


ids = st.sampled_from(["", "a", "b", "c"])
calls = st.lists(st.builds(MessageCall, id=ids, tool=st.sampled_from(["x", "y"])), max_size=3)
anything = st.one_of(
    st.builds(TaskMessage, role=st.sampled_from(["user", "system"]), content=st.text()),
    st.builds(TaskMessage, role=st.just("assistant"), content=st.text(), tool_calls=calls.map(tuple)),
    st.builds(TaskMessage, role=st.just("tool"), content=st.text(), tool_call_id=st.none() | ids, name=st.none()),
)


@given(st.lists(anything))
def test_every_call_is_answered_at_once_and_every_answer_asked_for(messages: list[TaskMessage]) -> None:
    waiting: set[str] = set()
    asked = json.loads(json.dumps(asked_messages(messages, {})))
    assert sum(one["role"] == "tool" for one in asked) >= sum(len(message.tool_calls) for message in messages)
    for one in asked:
        if one["role"] == "tool":
            waiting.remove(one["tool_call_id"])
        else:
            assert not waiting
            waiting = {call["id"] for call in one.get("tool_calls", ())}
            assert len(waiting) == len(one.get("tool_calls", ()))
    assert not waiting
