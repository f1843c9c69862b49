"""Messages in the words of eval files, and the turns of a conversation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from passgate.tasks.formats.evals.write.graders import written_graders

Said = Mapping[str, Any]

_CALL_NAMES = {"arguments": "input", "result": "output"}


def written_messages(messages: Sequence[Said]) -> list[dict[str, Any]]:
    """Messages with what there is in them."""
    return [_message(message) for message in messages]


def _message(message: Said) -> dict[str, Any]:
    calls = [
        {_CALL_NAMES.get(key, key): value for key, value in call.items()} for call in message.get("tool_calls", ())
    ]
    words = {"role": message["role"], "content": message.get("content", ""), **message}
    if calls:
        words["tool_calls"] = calls
    if calls and not words["content"]:
        del words["content"]
    return words


@dataclass(frozen=True)
class Conversation:
    """A test with turns."""

    keys: dict[str, Any]
    """What it says of its turns."""
    graders: list[Any]
    """What is asked of the whole conversation."""


def conversation_of(task: Said) -> Conversation | None:
    """The turns of a task whose graders are one for each thing that the user says; `None` for any other."""
    user, graders = task.get("environment", {}).get("user", {}), task["graders"]
    says = user.get("says", [])
    if len(graders) != 1 or set(user) - {"says"} or set(graders[0]) - _TURNS_KEYS or graders[0]["type"] != "turns":
        return None
    turns = graders[0]["turns"]
    if len(turns) != len(says) + 1 or not _can_open(task["inputs"]):
        return None
    inputs = [_opening(task["inputs"]), *says]
    listed = [_turn(said, turn) for said, turn in zip(inputs, turns, strict=True)]
    how = {key: graders[0][key] for key in ("aggregation", "on_turn_failure") if key in graders[0]}
    return Conversation({"mode": "conversation", "turns": listed, **how}, graders[0].get("conversation", []))


_TURNS_KEYS = {"type", "turns", "conversation", "aggregation", "on_turn_failure"}


def _can_open(inputs: Said) -> bool:
    return bool(inputs.get("prompt") or inputs.get("messages"))


def _opening(inputs: Said) -> Any:
    return inputs["prompt"] if inputs.get("prompt") else written_messages(inputs["messages"])


def _turn(said: Any, turn: Said) -> dict[str, Any]:
    expected = {"expected_output": turn["expected_output"]} if "expected_output" in turn else {}
    graders = {"assert": written_graders(turn["assertions"])} if "assertions" in turn else {}
    return {"input": said, **expected, **graders}
