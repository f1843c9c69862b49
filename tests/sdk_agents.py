"""Small agents made with real client libraries: they ask the model, run the tools that it asks for, and go on.

The libraries are imported where an agent runs: that takes seconds of CPU, and most tests need none.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

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
class Clients:
    """A client library's classes: of a client and of an asynchronous one, and where these find the models."""

    plain: Callable[..., Any]
    waiting: Callable[..., Any]
    base_url: Callable[[ModelAccess], str | None]

    def of(self, kind: Callable[..., Any], access: ModelAccess) -> Any:
        return kind(base_url=self.base_url(access), api_key=access.api_key)


@dataclass(frozen=True)
class Api:
    """How a client library is used for one API."""

    clients: Callable[[], Clients]
    resource: str
    """The attributes of a client that lead to `create` and `stream`."""
    final: str
    """The method of a stream that gives the whole reply."""
    request: Callable[[list[Any], list[str]], dict[str, Any]]
    turn: Callable[[Any], Turn]
    answer: Callable[[str, str], Any]
    """What tells the model the result of a call, from its id and the result."""
    model: Callable[[Any], Any]
    """The agent framework's model that asks by an asynchronous client."""

    def of(self, client: Any) -> Any:
        return attrgetter(self.resource)(client)


Ask = Callable[[Api, ModelAccess, dict[str, Any]], Awaitable[Any]]
"""Sends a request in one of the ways that client libraries have."""


def agent(api: Api, ask: Ask) -> SdkAgent:
    async def run(access: ModelAccess, tools: Tools, prompt: str) -> str:
        history: list[Any] = [{"role": "user", "content": prompt}]
        while True:
            turn = api.turn(await ask(api, access, api.request(history, list(tools))))
            if not turn.calls:
                return turn.text
            history += turn.items
            history += [api.answer(call_id, tools[tool](**given)) for call_id, tool, given in turn.calls]

    return run


async def _whole(api: Api, access: ModelAccess, request: dict[str, Any]) -> Any:
    """In a thread, as the synchronous client stands beside the event loop that the meter runs on."""

    def create() -> Any:
        clients = api.clients()
        with clients.of(clients.plain, access) as client:
            return api.of(client).create(**request)

    return await asyncio.to_thread(create)


async def _streamed(api: Api, access: ModelAccess, request: dict[str, Any]) -> Any:
    def read_on() -> Any:
        clients = api.clients()
        with clients.of(clients.plain, access) as client, api.of(client).stream(**request) as stream:
            return getattr(stream, api.final)()

    return await asyncio.to_thread(read_on)


async def _whole_async(api: Api, access: ModelAccess, request: dict[str, Any]) -> Any:
    clients = api.clients()
    async with clients.of(clients.waiting, access) as client:
        return await api.of(client).create(**request)


async def _streamed_async(api: Api, access: ModelAccess, request: dict[str, Any]) -> Any:
    clients = api.clients()
    async with clients.of(clients.waiting, access) as client, api.of(client).stream(**request) as stream:
        return await getattr(stream, api.final)()


async def _read_on(_: Any, events: AsyncIterator[Any]) -> None:
    async for _event in events:
        pass


def framework(api: Api, **options: Any) -> SdkAgent:
    """pydantic-ai. With a handler of events it streams, the steps before the last one too."""

    async def run(access: ModelAccess, tools: Tools, prompt: str) -> str:
        from pydantic_ai import Agent, Tool

        made = [
            Tool.from_schema(lambda path, run=run: run(path), name, f"Does {name}.", _PARAMETERS)
            for name, run in tools.items()
        ]
        clients = api.clients()
        async with clients.of(clients.waiting, access) as client:
            result = await Agent(api.model(client), tools=made).run(prompt, **options)
        return str(result.output)

    return run


def _openai() -> Clients:
    from openai import AsyncOpenAI, OpenAI

    return Clients(OpenAI, AsyncOpenAI, lambda access: access.openai_base_url)


def _anthropic() -> Clients:
    from anthropic import Anthropic, AsyncAnthropic

    return Clients(Anthropic, AsyncAnthropic, lambda access: access.anthropic_base_url)


# Chat completions


def _chat_request(history: list[Any], tools: list[str]) -> dict[str, Any]:
    described = [{"type": "function", "function": {"name": name, "parameters": _PARAMETERS}} for name in tools]
    return {"model": MODEL, "messages": history, "tools": described}


def _chat_turn(completion: Any) -> Turn:
    message = completion.choices[0].message
    calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    return Turn(message.content or "", calls, [message.model_dump(exclude_none=True, exclude={"parsed"})])


def _chat_answer(call_id: str, result: str) -> Any:
    return {"role": "tool", "tool_call_id": call_id, "content": result}


def _chat_model(client: Any) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))


# Responses


def _response_request(history: list[Any], tools: list[str]) -> dict[str, Any]:
    described = [{"type": "function", "name": name, "parameters": _PARAMETERS, "strict": False} for name in tools]
    return {"model": MODEL, "input": history, "tools": described}


def _response_turn(response: Any) -> Turn:
    calls = [item for item in response.output if item.type == "function_call"]
    items = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
    return Turn(response.output_text, [(call.call_id, call.name, json.loads(call.arguments)) for call in calls], items)


def _response_answer(call_id: str, result: str) -> Any:
    return {"type": "function_call_output", "call_id": call_id, "output": result}


def _response_model(client: Any) -> Any:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(MODEL, provider=OpenAIProvider(openai_client=client))


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


def _message_answer(call_id: str, result: str) -> Any:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": result}]}


def _message_model(client: Any) -> Any:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))


_CHAT = Api(_openai, "chat.completions", "get_final_completion", _chat_request, _chat_turn, _chat_answer, _chat_model)
_RESPONSES = Api(
    _openai, "responses", "get_final_response", _response_request, _response_turn, _response_answer, _response_model
)
_MESSAGES = Api(
    _anthropic, "messages", "get_final_message", _message_request, _message_turn, _message_answer, _message_model
)


def _agents(plain: Ask, waiting: Ask, **of_the_framework: Any) -> dict[str, SdkAgent]:
    made: dict[str, SdkAgent] = {}
    for name, api in {"openai chat": _CHAT, "openai responses": _RESPONSES, "anthropic": _MESSAGES}.items():
        made |= {name: agent(api, plain), f"{name}, async": agent(api, waiting)}
        made[f"pydantic-ai {name.removeprefix('openai ')}"] = framework(api, **of_the_framework)
    return made


WHOLE = _agents(_whole, _whole_async)
STREAMING = _agents(_streamed, _streamed_async, event_stream_handler=_read_on)
