"""An agent made with pydantic-ai."""

import asyncio
import os
import sys
from collections.abc import AsyncIterable

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset


async def read_on(_: object, events: AsyncIterable[object]) -> None:
    async for _event in events:
        pass


async def answer(prompt: str, *, streams: bool) -> str:
    tools = MCPToolset(os.environ["PASSGATE_MCP_URL"])
    agent = Agent("anthropic:claude-sonnet-4-5", toolsets=[tools], model_settings={"max_tokens": 1000})
    # Not `run_stream`, which ends with the first text even if the model calls a tool after it.
    return (await agent.run(prompt, event_stream_handler=read_on if streams else None)).output


if __name__ == "__main__":
    print(asyncio.run(answer(sys.argv[1], streams=sys.argv[2].endswith("streamed"))))
