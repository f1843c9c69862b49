"""A task's messages in the shape of chat completions."""

import base64
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.agents.chat_messages import MAX_IMAGE_BYTES, task_chat
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.messages import MessageCall, TaskMessage


def message(role: str, content: Any = "", **more: Any) -> TaskMessage:
    return TaskMessage.model_validate({"role": role, "content": content, **more})


def asking(*calls: dict[str, Any], content: str = "") -> TaskMessage:
    return message("assistant", content, tool_calls=calls)


def test_texts_stay_texts() -> None:
    texts = [("system", "Be kind."), ("user", "Hello."), ("assistant", "Hi."), ("user", "Go on.")]
    assert task_chat([message(*text) for text in texts], {}) == [
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
    (asked,) = task_chat([message("user", blocks)], {})
    assert asked["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "text", "text": '<file path="docs/a.md">\n# A\n</file>'},
        {"type": "text", "text": '{\n  "order": 7\n}'},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://host/a.png"}},
    ]


def test_blocks_of_others_are_one_text() -> None:
    blocks = [{"type": "text", "value": "a"}, {"type": "image", "value": "b.png"}]
    (asked,) = task_chat([message("system", blocks)], {})
    assert asked == {"role": "system", "content": "a\n\n[image: b.png]"}


@pytest.mark.parametrize(
    ("name", "kind"), [("a.png", "png"), ("a.JPG", "jpeg"), ("b/a.jpeg", "jpeg"), ("a.gif", "gif"), ("a.webp", "webp")]
)
def test_an_image_is_sent_as_it_is(tmp_path: Path, name: str, kind: str) -> None:
    content = bytes(range(256))
    (tmp_path / "image").write_bytes(content)
    (asked,) = task_chat([message("user", [{"type": "image", "value": name}])], {name: tmp_path / "image"})
    (part,) = asked["content"]
    head, _, encoded = part["image_url"]["url"].partition(",")
    assert head == f"data:image/{kind};base64"
    assert base64.b64decode(encoded) == content


def sized(size: int) -> Callable[[Path], None]:
    return lambda file: file.touch() or os.truncate(file, size)


@pytest.mark.parametrize(
    ("name", "make", "what"),
    [
        ("a.svg", Path.touch, r"the image a\.svg cannot be sent to a model: known are \.png, \.jpg"),
        ("a.png", sized(MAX_IMAGE_BYTES + 1), r"the image a\.png has more than 5 MiB"),
        ("a.png", os.mkfifo, r"the image a\.png cannot be read"),
        ("a.png", lambda file: file.symlink_to("/etc/hostname"), r"the image a\.png cannot be read"),
        ("a.png", lambda file: None, r"the image a\.png cannot be read"),
    ],
)
def test_an_image_that_cannot_be_sent(tmp_path: Path, name: str, make: Any, what: str) -> None:
    make(tmp_path / name)
    with pytest.raises(MeasurementError, match=what):
        task_chat([message("user", [{"type": "image", "value": name}])], {name: tmp_path / name})


def test_an_image_of_the_largest_size(tmp_path: Path) -> None:
    sized(MAX_IMAGE_BYTES)(tmp_path / "a.png")
    assert task_chat([message("user", [{"type": "image", "value": "a.png"}])], {"a.png": tmp_path / "a.png"})


def answer(content: Any, **more: Any) -> TaskMessage:
    return message("tool", content, **more)


def told(messages: list[TaskMessage]) -> Iterator[str | None]:
    """What is said, each call and each answer after the number of its call."""
    asked = task_chat(messages, {})
    ids = [call["id"] for one in asked for call in one.get("tool_calls", ())]
    assert len(set(ids)) == len(ids)
    for one in asked:
        if one["role"] == "tool":
            assert one.keys() == {"role", "tool_call_id", "content"}
            yield f"{ids.index(one['tool_call_id'])}: {one['content']}"
        else:
            yield one["content"]
            yield from (
                f"{c['type']} {c['function']['name']} {c['function']['arguments']}" for c in one.get("tool_calls", ())
            )


LOOK, READ, WRITE = {"tool": "look"}, {"tool": "read"}, {"tool": "write"}
LOOK_READ = ("function look {}", "function read {}")
BY_ID = asking({"id": "a", **LOOK, "arguments": {"at": 1}}, {"id": "b", **LOOK}, content="I look.")
WITH_RESULTS = asking(LOOK | {"result": {"seen": 1}}, READ), message("user", "And?"), asking(WRITE | {"result": "y"})


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        (
            [BY_ID, answer("second", tool_call_id="b"), answer([{"type": "json", "value": 1}], tool_call_id="a")],
            ["I look.", 'function look {"at": 1}', "function look {}", "1: second", "0: 1"],
        ),
        (
            [asking(LOOK, READ, WRITE), answer("r", name="read"), answer("l"), answer("w", tool_call_id="other")],
            [None, *LOOK_READ, "function write {}", "1: r", "0: l", "2: w"],
        ),
        (WITH_RESULTS, [None, *LOOK_READ, '0: {"seen": 1}', "1: ", "And?", None, "function write {}", "2: y"]),
        ([message("user", "Hm."), answer("found", name="look")], ["Hm.", None, "function look {}", "0: found"]),
    ],
    ids=["by their ids", "of its tool, else the first", "a call's own result", "an answer that nobody asked for"],
)
def test_calls_and_their_answers(messages: list[TaskMessage], says: list[str | None]) -> None:
    assert list(told(messages)) == says


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
    asked = json.loads(json.dumps(task_chat(messages, {})))
    assert sum(one["role"] == "tool" for one in asked) >= sum(len(message.tool_calls) for message in messages)
    for one in asked:
        if one["role"] == "tool":
            waiting.remove(one["tool_call_id"])
        else:
            assert not waiting
            waiting = {call["id"] for call in one.get("tool_calls", ())}
            assert len(waiting) == len(one.get("tool_calls", ()))
    assert not waiting
