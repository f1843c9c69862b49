"""An agent made with the OpenAI Agents SDK, by responses or by chat completions."""

import asyncio
import os
import sys

from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp


async def answer(prompt: str, *, streams: bool) -> str:
    server = MCPServerStreamableHttp({"url": os.environ["PASSGATE_MCP_URL"]}, client_session_timeout_seconds=60)
    async with server as tools:
        agent = Agent("assistant", model="gpt-5-mini", mcp_servers=[tools])
        if streams:
            result = Runner.run_streamed(agent, prompt)
            async for _ in result.stream_events():
                pass
            return str(result.final_output)
        return str((await Runner.run(agent, prompt)).final_output)


if __name__ == "__main__":
    set_tracing_disabled(True)
    set_default_openai_api("chat_completions" if "chat" in sys.argv else "responses")
    print(asyncio.run(answer(sys.argv[1], streams=sys.argv[2].endswith("streamed"))))
