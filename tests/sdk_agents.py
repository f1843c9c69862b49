"""Small agents made with real client libraries: they ask the model, run the tools that it asks for, and go on."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI
from pydantic_ai import Agent, Tool
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
Connect = Callable[[ModelAccess], Any]
"""Makes a client."""
_PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


@dataclass(frozen=True)
class Turn:
    """What the model said: the text, its calls as (id, tool, arguments), and what to add to the conversation."""

    text: str
    calls: list[tuple[str, str, dict[str, Any]]]
    items: list[Any]


@dataclass(frozen=True)
class Sdk:
    """How a client library is used for one API."""

    clients: tuple[Connect, Connect]
    """A synchronous one and another."""
    resource: Callable[[Any], Any]
    """What of a client makes requests."""
    final: str
    """The method of a stream that gives the whole reply."""
    request: Callable[[list[Any], list[str]], dict[str, Any]]
    """From the conversation and the names of the tools."""
    turn: Callable[[Any], Turn]
    answer: Callable[[str, str], Any]
    """What tells the model the result of a call, from its id and the result."""

    def whole(self, access: ModelAccess, request: dict[str, Any]) -> Any:
        with self.clients[0](access) as client:
            return self.resource(client).create(**request)

    def streamed(self, access: ModelAccess, request: dict[str, Any]) -> Any:
        with self.clients[0](access) as client, self.resource(client).stream(**request) as stream:
            return getattr(stream, self.final)()

    async def async_whole(self, access: ModelAccess, request: dict[str, Any]) -> Any:
        async with self.clients[1](access) as client:
            return await self.resource(client).create(**request)

    async def async_streamed(self, access: ModelAccess, request: dict[str, Any]) -> Any:
        async with self.clients[1](access) as client, self.resource(client).stream(**request) as stream:
            return await getattr(stream, self.final)()

    def agent(self, ask: Callable[[ModelAccess, dict[str, Any]], Any]) -> SdkAgent:
        """An agent that asks in one of these ways; a synchronous one in a thread beside the meter's event loop."""

        async def run(access: ModelAccess, tools: Tools, prompt: str) -> str:
            history: list[Any] = [{"role": "user", "content": prompt}]
            while True:
                given = (access, self.request(history, list(tools)))
                waits = asyncio.iscoroutinefunction(ask)
                turn = self.turn(await ask(*given) if waits else await asyncio.to_thread(ask, *given))
                if not turn.calls:
                    return turn.text
                history += turn.items
                history += [self.answer(call_id, tools[tool](**words)) for call_id, tool, words in turn.calls]

        return run


def _openai(client: Callable[..., Any]) -> Connect:
    return lambda access: client(base_url=access.base_urls["openai"], api_key=access.api_key)


def _anthropic(client: Callable[..., Any]) -> Connect:
    return lambda access: client(base_url=access.base_urls["anthropic"], api_key=access.api_key)


def _chat_request(history: list[Any], tools: list[str]) -> dict[str, Any]:
    described = [{"type": "function", "function": {"name": name, "parameters": _PARAMETERS}} for name in tools]
    return {"model": MODEL, "messages": history, "tools": described}


def _chat_turn(completion: Any) -> Turn:
    message = completion.choices[0].message
    calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
    return Turn(message.content or "", calls, [message.model_dump(exclude_none=True, exclude={"parsed"})])


def _chat_answer(call_id: str, result: str) -> Any:
    return {"role": "tool", "tool_call_id": call_id, "content": result}


def _response_request(history: list[Any], tools: list[str]) -> dict[str, Any]:
    described = [{"type": "function", "name": name, "parameters": _PARAMETERS, "strict": False} for name in tools]
    return {"model": MODEL, "input": history, "tools": described}


def _response_turn(response: Any) -> Turn:
    calls = [item for item in response.output if item.type == "function_call"]
    items = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
    return Turn(response.output_text, [(call.call_id, call.name, json.loads(call.arguments)) for call in calls], items)


def _response_answer(call_id: str, result: str) -> Any:
    return {"type": "function_call_output", "call_id": call_id, "output": result}


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


OPENAI = (_openai(OpenAI), _openai(AsyncOpenAI))
ANTHROPIC = (_anthropic(Anthropic), _anthropic(AsyncAnthropic))
SDKS = {
    "openai chat": Sdk(
        OPENAI, attrgetter("chat.completions"), "get_final_completion", _chat_request, _chat_turn, _chat_answer
    ),
    "openai responses": Sdk(
        OPENAI, attrgetter("responses"), "get_final_response", _response_request, _response_turn, _response_answer
    ),
    "anthropic": Sdk(
        ANTHROPIC, attrgetter("messages"), "get_final_message", _message_request, _message_turn, _message_answer
    ),
}


FRAMEWORKS = {
    "pydantic-ai chat": (OPENAI[1], OpenAIChatModel, OpenAIProvider, "openai_client"),
    "pydantic-ai responses": (OPENAI[1], OpenAIResponsesModel, OpenAIProvider, "openai_client"),
    "pydantic-ai anthropic": (ANTHROPIC[1], AnthropicModel, AnthropicProvider, "anthropic_client"),
}
"""How a client is made, and what of it the framework makes a model of."""


def framework(connect: Connect, model: Any, provider: Any, client_name: str, *, streams: bool) -> SdkAgent:
    """pydantic-ai, with replies that are streamed in all steps or in none."""

    async def read_on(_: Any, events: Any) -> None:
        async for _event in events:
            pass

    async def run(access: ModelAccess, tools: Tools, prompt: str) -> str:
        described = [
            Tool.from_schema(lambda path, run=run: run(path), name, f"Does {name}.", _PARAMETERS)
            for name, run in tools.items()
        ]
        async with connect(access) as client:
            agent = Agent(model(MODEL, provider=provider(**{client_name: client})), tools=described)
            result = await agent.run(prompt, event_stream_handler=read_on if streams else None)
        return str(result.output)

    return run


WHOLE: dict[str, SdkAgent] = {
    **{name: sdk.agent(sdk.whole) for name, sdk in SDKS.items()},
    **{f"{name}, async": sdk.agent(sdk.async_whole) for name, sdk in SDKS.items()},
    **{name: framework(*using, streams=False) for name, using in FRAMEWORKS.items()},
}
STREAMING: dict[str, SdkAgent] = {
    **{name: sdk.agent(sdk.streamed) for name, sdk in SDKS.items()},
    **{f"{name}, async": sdk.agent(sdk.async_streamed) for name, sdk in SDKS.items()},
    **{name: framework(*using, streams=True) for name, using in FRAMEWORKS.items()},
}
