"""The agent of LangGraph as a service on the loopback, which prints its port."""

import asyncio

import uvicorn
from langgraph_agent import answer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def ask(request: Request) -> JSONResponse:
    asked = await request.json()
    return JSONResponse({"output": await answer(asked["prompt"], asked["tools"], **asked["model"])})


class Server(uvicorn.Server):
    async def startup(self, sockets: object = None) -> None:
        await super().startup()
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


if __name__ == "__main__":
    routes = [Route("/ask", ask, methods=["POST"])]
    asyncio.run(Server(uvicorn.Config(Starlette(routes=routes), port=0, log_config=None)).serve())
