"""Small agents made with real client libraries: they ask the model, run the tools that it asks for, and go on."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI
from pydantic_ai import Agent, Tool
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from passgate.tasks.metering.access import ModelAccess

MODEL = "scripted-model"
MAX_TOKENS = 64
"""Of a reply, where the API asks for a limit."""
Tools = Mapping[str, Callable[[str], str]]
"""By their names; each takes a `path`."""
SdkAgent = Callable[[ModelAccess, Tools, str], Awaitable[str]]
"""Works on a prompt with tools and gives its last word."""
_PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


@dataclass(frozen=True)
class Turn:
    """What the model said: the text, its calls as (id, tool, arguments), and what to add to the conversation."""

    text: str
    calls: list[tuple[str, str, dict[str, Any]]]
    items: list[Any]


@dataclass(frozen=True)
class Sdk:
    """How one client library is used for one API."""

    ask: Callable[[ModelAccess, list[Any], list[str]], Awaitable[Turn]]
    answer: Callable[[str, str], Any]
    """What tells the model the result of a call, from its id and the result."""

    async def run(self, access: ModelAccess, tools: Tools, prompt: str) -> str:
        history: list[Any] = [{"role": "user", "content": prompt}]
        while True:
            turn = await self.ask(access, history, list(tools))
            if not turn.calls:
                return turn.text
            history += turn.items
            history += [self.answer(call_id, tools[tool](**given)) for call_id, tool, given in turn.calls]


def _openai(access: ModelAccess) -> OpenAI:
    return OpenAI(base_url=access.openai_base_url, api_key=access.api_key)


def _async_openai(access: ModelAccess) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=access.openai_base_url, api_key=access.api_key)


def _anthropic(access: ModelAccess) -> Anthropic:
    return Anthropic(base_url=access.anthropic_base_url, api_key=access.api_key)


def _async_anthropic(access: ModelAccess) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=access.anthropic_base_url, api_key=access.api_key)


def in_a_thread(
    ask: Callable[[ModelAccess, list[Any], list[str]], Turn],
) -> Callable[[ModelAccess, list[Any], list[str]], Awaitable[Turn]]:
    """A synchronous client beside the event loop that the meter runs on."""

    async def asked(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
        return await asyncio.to_thread(ask, access, history, tools)

    return asked


# Chat completions


def _chat_request(history: list[Any], tools: list[str]) -> dict[str, Any]:
    described = [{"type": "function", "function": {"name": name, "parameters": _PARAMETERS}} for name in tools]
    return {"model": MODEL, "messages": history, "tools": described}


def _chat_turn(completion: Any) -> Turn:
    message = completion.choices[0].message
    calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    return Turn(message.content or "", calls, [message.model_dump(exclude_none=True, exclude={"parsed"})])


def _chat(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    with _openai(access) as client:
        return _chat_turn(client.chat.completions.create(**_chat_request(history, tools)))


def _chat_stream(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    with _openai(access) as client, client.chat.completions.stream(**_chat_request(history, tools)) as stream:
        return _chat_turn(stream.get_final_completion())


async def _async_chat(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    async with _async_openai(access) as client:
        return _chat_turn(await client.chat.completions.create(**_chat_request(history, tools)))


async def _async_chat_stream(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    request = _chat_request(history, tools)
    async with _async_openai(access) as client, client.chat.completions.stream(**request) as stream:
        return _chat_turn(await stream.get_final_completion())


def _chat_answer(call_id: str, result: str) -> Any:
    return {"role": "tool", "tool_call_id": call_id, "content": result}


# Responses


def _response_request(history: list[Any], tools: list[str]) -> dict[str, Any]:
    described = [{"type": "function", "name": name, "parameters": _PARAMETERS, "strict": False} for name in tools]
    return {"model": MODEL, "input": history, "tools": described}


def _response_turn(response: Any) -> Turn:
    calls = [item for item in response.output if item.type == "function_call"]
    items = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
    return Turn(response.output_text, [(call.call_id, call.name, json.loads(call.arguments)) for call in calls], items)


def _response(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    with _openai(access) as client:
        return _response_turn(client.responses.create(**_response_request(history, tools)))


def _response_stream(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    with _openai(access) as client, client.responses.stream(**_response_request(history, tools)) as stream:
        return _response_turn(stream.get_final_response())


async def _async_response(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    async with _async_openai(access) as client:
        return _response_turn(await client.responses.create(**_response_request(history, tools)))


async def _async_response_stream(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    request = _response_request(history, tools)
    async with _async_openai(access) as client, client.responses.stream(**request) as stream:
        return _response_turn(await stream.get_final_response())


def _response_answer(call_id: str, result: str) -> Any:
    return {"type": "function_call_output", "call_id": call_id, "output": result}


# Anthropic's messages


def _message_request(history: list[Any], tools: list[str]) -> dict[str, Any]:
    described = [{"name": name, "input_schema": _PARAMETERS} for name in tools]
    return {"model": MODEL, "max_tokens": MAX_TOKENS, "messages": history, "tools": described}


def _message_turn(message: Any) -> Turn:
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
    kept = {"type", "text", "id", "name", "input"}
    content = [block.model_dump(include=kept, exclude_none=True) for block in message.content]
    return Turn(text, calls, [{"role": "assistant", "content": content}])


def _message(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    with _anthropic(access) as client:
        return _message_turn(client.messages.create(**_message_request(history, tools)))


def _message_stream(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    with _anthropic(access) as client, client.messages.stream(**_message_request(history, tools)) as stream:
        return _message_turn(stream.get_final_message())


async def _async_message(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    async with _async_anthropic(access) as client:
        return _message_turn(await client.messages.create(**_message_request(history, tools)))


async def _async_message_stream(access: ModelAccess, history: list[Any], tools: list[str]) -> Turn:
    request = _message_request(history, tools)
    async with _async_anthropic(access) as client, client.messages.stream(**request) as stream:
        return _message_turn(await stream.get_final_message())


def _message_answer(call_id: str, result: str) -> Any:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": result}]}


# An agent framework


@asynccontextmanager
async def _chat_model(access: ModelAccess) -> AsyncIterator[Model]:
    async with _async_openai(access) as client:
        yield OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))


@asynccontextmanager
async def _response_model(access: ModelAccess) -> AsyncIterator[Model]:
    async with _async_openai(access) as client:
        yield OpenAIResponsesModel(MODEL, provider=OpenAIProvider(openai_client=client))


@asynccontextmanager
async def _message_model(access: ModelAccess) -> AsyncIterator[Model]:
    async with _async_anthropic(access) as client:
        yield AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))


def _framework_tools(tools: Tools) -> list[Tool[None]]:
    return [
        Tool.from_schema(lambda path, run=run: run(path), name, f"Does {name}.", _PARAMETERS)
        for name, run in tools.items()
    ]


def framework(model: Callable[[ModelAccess], Any]) -> SdkAgent:
    """pydantic-ai with whole replies."""

    async def run(access: ModelAccess, tools: Tools, prompt: str) -> str:
        async with model(access) as connected:
            result = await Agent(connected, tools=_framework_tools(tools)).run(prompt)
        return str(result.output)

    return run


def streaming_framework(model: Callable[[ModelAccess], Any]) -> SdkAgent:
    """pydantic-ai with streamed replies, of the steps before the last one too."""

    async def read_on(_: Any, events: AsyncIterator[Any]) -> None:
        async for _event in events:
            pass

    async def run(access: ModelAccess, tools: Tools, prompt: str) -> str:
        async with model(access) as connected:
            agent = Agent(connected, tools=_framework_tools(tools))
            result = await agent.run(prompt, event_stream_handler=read_on)
        return str(result.output)

    return run


WHOLE: dict[str, SdkAgent] = {
    "openai chat": Sdk(in_a_thread(_chat), _chat_answer).run,
    "openai chat, async": Sdk(_async_chat, _chat_answer).run,
    "openai responses": Sdk(in_a_thread(_response), _response_answer).run,
    "openai responses, async": Sdk(_async_response, _response_answer).run,
    "anthropic": Sdk(in_a_thread(_message), _message_answer).run,
    "anthropic, async": Sdk(_async_message, _message_answer).run,
    "pydantic-ai chat": framework(_chat_model),
    "pydantic-ai responses": framework(_response_model),
    "pydantic-ai anthropic": framework(_message_model),
}
STREAMING: dict[str, SdkAgent] = {
    "openai chat": Sdk(in_a_thread(_chat_stream), _chat_answer).run,
    "openai chat, async": Sdk(_async_chat_stream, _chat_answer).run,
    "openai responses": Sdk(in_a_thread(_response_stream), _response_answer).run,
    "openai responses, async": Sdk(_async_response_stream, _response_answer).run,
    "anthropic": Sdk(in_a_thread(_message_stream), _message_answer).run,
    "anthropic, async": Sdk(_async_message_stream, _message_answer).run,
    "pydantic-ai chat": streaming_framework(_chat_model),
    "pydantic-ai responses": streaming_framework(_response_model),
    "pydantic-ai anthropic": streaming_framework(_message_model),
}
