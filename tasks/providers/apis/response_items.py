"""The output items of OpenAI's responses.

Items whose type ends in `_call` are calls: those that the agent runs (`function_call`, `custom_tool_call`,
`local_shell_call`, `shell_call`, `apply_patch_call`, `computer_call`) and those that the provider has run itself
(`web_search_call`, `file_search_call`, `code_interpreter_call`, `image_generation_call`, `mcp_call`). So are `program`,
and `mcp_approval_request`, whose `mcp_call` is not another one.
"""

from collections.abc import Collection, Mapping
from typing import Any

from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.openai_shared import usage_of
from passgate.tasks.providers.apis.texts import arguments_of, clean, content_text, reply_text
from passgate.tasks.providers.exchange import AskedCall, ModelReply, ToolAnswer

_CALL = "_call"
_OTHER_CALLS = {"program": "program", "mcp_approval_request": "mcp"}
_GIVEN_AS = ("action", "operation")
_GIVEN_AMONG = ("actions", "queries", "code", "container_id")
_RESULTS = ("output", "result", "tools", "error")
_TEXT_ANSWERS = frozenset({"function_call_output", "custom_tool_call_output", "computer_call_output"})
_ANSWERS = ("_call_output", "tool_search_output", "program_output")


def kind_of(item: dict[str, Any]) -> str:
    """The type of an item; empty when it is no text."""
    kind = item.get("type")
    return kind if isinstance(kind, str) else ""


def is_call(item: dict[str, Any]) -> bool:
    """Whether an item is a call that was not asked for before."""
    kind = kind_of(item)
    if kind == "mcp_call":
        return item.get("approval_request_id") is None
    return kind.endswith(_CALL) or kind in _OTHER_CALLS


def is_answer(item: dict[str, Any]) -> bool:
    """Whether an item is the result of a call."""
    kind = kind_of(item)
    return kind.endswith(_ANSWERS) or (kind == "mcp_call" and (_has(item, "output") or _has(item, "error")))


def _has(item: dict[str, Any], key: str) -> bool:
    return item.get(key) is not None


def call_id_of(item: dict[str, Any], position: int) -> str:
    """The call that an item is, or is the result of; one without an id goes by its position in the output."""
    for key in ("approval_request_id", "call_id", "id"):
        if isinstance(item.get(key), str) and item[key]:
            return str(item[key])
    return f"output[{position}]"


def asked_call(item: dict[str, Any], position: int) -> AskedCall:
    """An item as a call."""
    place = f"output[{position}]"
    kind = kind_of(item)
    name = values.text_or_empty(item.get("name"), f"{place}.name")
    return AskedCall(
        call_id=call_id_of(item, position),
        tool=clean(name or _OTHER_CALLS.get(kind) or kind.removesuffix(_CALL)),
        arguments={"input": clean(values.text_or_empty(item.get("input"), f"{place}.input"))}
        if kind == "custom_tool_call"
        else _arguments(item),
    )


def _arguments(item: dict[str, Any]) -> Mapping[str, Any]:
    if _has(item, "arguments"):
        return arguments_of(item["arguments"])
    whole = next((item[key] for key in _GIVEN_AS if isinstance(item.get(key), dict)), None)
    return arguments_of(whole or {key: item[key] for key in _GIVEN_AMONG if _has(item, key)})


def answer_of(item: dict[str, Any], place: str) -> ToolAnswer:
    """An item as a result: the text of what the agent ran, of other tools what they gave."""
    kind = kind_of(item)
    result = next((item[key] for key in _RESULTS if _has(item, key)), None)
    if kind in _TEXT_ANSWERS:
        result = content_text([result] if isinstance(result, dict) else result, f"{place}.output")
    is_error = None
    if kind == "mcp_call":
        is_error = _has(item, "error")
    elif kind == "apply_patch_call_output":
        is_error = item.get("status") == "failed"
    return ToolAnswer(call_id_of(item, 0), result, is_error)


def without(output: list[dict[str, Any]], call_ids: Collection[str]) -> list[dict[str, Any]]:
    """The items without these calls and what came of them."""
    return [
        item
        for position, item in enumerate(output)
        if not ((is_call(item) or is_answer(item)) and call_id_of(item, position) in call_ids)
    ]


def items_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The output items of a response. Raises `ApiFormatError`."""
    output = values.sequence_or_empty(response.get("output"), "output")
    return [values.mapping(item, f"output[{position}]") for position, item in enumerate(output)]


def text_of(items: list[dict[str, Any]]) -> str:
    """What the model says in these items."""
    messages = [(n, item) for n, item in enumerate(items) if kind_of(item) == "message"]
    return "".join([reply_text(item.get("content"), f"output[{n}].content") for n, item in messages])


def reply_of(response: dict[str, Any]) -> ModelReply:
    """What a whole response answers. Raises `ApiFormatError`."""
    items = items_of(response)
    return ModelReply(
        text=clean(text_of(items)),
        calls=tuple(asked_call(item, position) for position, item in enumerate(items) if is_call(item)),
        usage=usage_of(response.get("usage"), tokens_in="input_tokens", tokens_out="output_tokens"),
        model=clean(values.text_or_empty(response.get("model"), "model")),
    )
