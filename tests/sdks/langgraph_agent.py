"""An agent made with LangGraph and its MCP adapters."""

import asyncio
import os
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


async def answer(prompt: str, mcp_url: str, **options: object) -> str:
    """`options` are those of the model."""
    tools = await MultiServerMCPClient({"passgate": {"transport": "streamable_http", "url": mcp_url}}).get_tools()
    model = ChatOpenAI(model="gpt-5-mini", **options).bind_tools(tools)

    async def ask(state: MessagesState) -> MessagesState:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("model", ask).add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model").add_conditional_edges("model", tools_condition).add_edge("tools", "model")
    state = await graph.compile().ainvoke({"messages": [("user", prompt)]})
    return str(state["messages"][-1].text)


if __name__ == "__main__":
    url = os.environ["PASSGATE_MCP_URL"]
    print(asyncio.run(answer(sys.argv[1], url, streaming=sys.argv[2].endswith("streamed"))))
