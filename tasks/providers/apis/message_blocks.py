"""The content blocks of Anthropic's messages, and what a message used.

Blocks whose type ends in `tool_use` are calls: those that the agent runs and those that the provider has run itself
(`server_tool_use`, `mcp_tool_use`), whose results, of a type that ends in `tool_result`, are in the same message.
"""

from collections.abc import Iterable
from typing import Any

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.texts import arguments_of, clean, content_text
from passgate.tasks.providers.exchange import AskedCall, ToolAnswer


def is_call(block: dict[str, Any]) -> bool:
    """Whether a block is a call, the agent's or the provider's."""
    return _kind(block).endswith("tool_use")


def is_answer(block: Any) -> bool:
    """Whether a block is the result of a call."""
    return isinstance(block, dict) and _kind(block).endswith("tool_result")


def call_id_of(block: dict[str, Any]) -> str:
    """The call that a block is, or is the result of; empty for other blocks."""
    identity = block.get("id" if is_call(block) else "tool_use_id")
    return identity if isinstance(identity, str) else ""


def _kind(block: dict[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def asked_call(block: dict[str, Any], place: str, given: str | None = None) -> AskedCall:
    """A block as a call; `given` is the JSON text of its input where that came apart from it."""
    return AskedCall(
        call_id=values.text(block.get("id"), f"{place}.id"),
        tool=clean(values.text(block.get("name"), f"{place}.name")),
        arguments=arguments_of(given or block.get("input")),
    )


def answer_of(block: dict[str, Any], place: str) -> ToolAnswer:
    """A block as a result: text of the agent's, of the provider's own tools what they gave."""
    content = block.get("content")
    is_error = values.truth_or_false(block.get("is_error"), f"{place}.is_error")
    if isinstance(content, dict):
        is_error = is_error or _kind(content).endswith("_error")
    is_text = _kind(block) == "tool_result"
    return ToolAnswer(
        call_id=values.text(block.get("tool_use_id"), f"{place}.tool_use_id"),
        result=content_text(content, f"{place}.content") if is_text else content,
        is_error=is_error,
    )


def reason_with(reason: Any, calls: Iterable[dict[str, Any]]) -> Any:
    """The reason to stop of a reply that is left with these calls: without one to go on from, the turn is over."""
    kinds = {_kind(call) for call in calls}
    is_over = (reason == "tool_use" and "tool_use" not in kinds) or (reason == "pause_turn" and not kinds)
    return "end_turn" if is_over else reason


def usage_of(given: Any) -> Usage:
    """The usage of a message. Anthropic counts tokens from and to its cache beside `input_tokens`."""
    fields = values.mapping_or_empty(given, "usage")
    cached = values.count_or_none(fields.get("cache_read_input_tokens"), "usage.cache_read_input_tokens")
    written = values.count_or_none(fields.get("cache_creation_input_tokens"), "usage.cache_creation_input_tokens")
    rest = values.count_or_none(fields.get("input_tokens"), "usage.input_tokens")
    return Usage(
        tokens_in=None if rest is None else rest + (cached or 0) + (written or 0),
        tokens_cached=cached,
        tokens_cache_write=written,
        tokens_out=values.count_or_none(fields.get("output_tokens"), "usage.output_tokens"),
    )
