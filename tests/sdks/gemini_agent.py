"""An agent made with google-genai, which calls the tools of an MCP session by itself."""

import asyncio
import os
import sys

from google import genai
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

MODEL = "gemini-2.5-flash"


async def answer(prompt: str, *, streams: bool) -> str:
    async with (
        streamable_http_client(os.environ["PASSGATE_MCP_URL"]) as (reads, writes),
        ClientSession(reads, writes) as session,
    ):
        await session.initialize()
        # A dictionary: `GenerateContentConfig` would be copied, and this session cannot be.
        models, asked = genai.Client().aio.models, {"model": MODEL, "contents": prompt, "config": {"tools": [session]}}
        if streams:
            return "".join([chunk.text or "" async for chunk in await models.generate_content_stream(**asked)])
        return (await models.generate_content(**asked)).text or ""


if __name__ == "__main__":
    print(asyncio.run(answer(sys.argv[1], streams=sys.argv[2].endswith("streamed"))))
