"""A Python function as an agent, made with google-genai: the tools of its attempt as declarations of functions."""

from google import genai
from google.genai import types

from passgate.tasks.agents.interface import Attempt, ToolError


async def answer(attempt: Attempt) -> str:
    declared = [
        types.FunctionDeclaration(
            name=tool["name"], description=tool["description"], parameters_json_schema=tool["parameters"]
        )
        for tool in attempt.tools
    ]
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)])
    chat = genai.Client().aio.chats.create(model="gemini-2.5-flash", config=config)
    reply = await chat.send_message(attempt.prompt)
    while reply.function_calls:
        results = []
        for call in reply.function_calls:
            try:
                response = {"result": await attempt.call_tool(call.name, call.args)}
            except ToolError as error:
                response = {"error": str(error)}
            results.append(types.Part.from_function_response(name=call.name, response=response))
        reply = await chat.send_message(results)
    return reply.text or ""
