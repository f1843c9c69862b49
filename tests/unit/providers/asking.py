"""Asking an upstream in one line."""

import json
import socket

import pytest

from passgate.tasks.providers.calls import CallProgress
from passgate.tasks.providers.client import ProviderReply, Upstream, UpstreamError

CHAT = "chat/completions"
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello."}]}).encode()
STREAM = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello."}]}).encode()
SECONDS = 300.0


async def send(
    upstream: Upstream, *, seconds: float = SECONDS, progress: CallProgress | None = None, **headers: str
) -> ProviderReply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await upstream.send(CHAT, BODY, named, seconds=seconds, progress=progress)


async def failure(
    upstream: Upstream, *, seconds: float = SECONDS, progress: CallProgress | None = None
) -> UpstreamError:
    with pytest.raises(UpstreamError) as caught:
        await send(upstream, seconds=seconds, progress=progress)
    return caught.value


async def streamed(upstream: Upstream, progress: CallProgress | None = None) -> bytes:
    async with upstream.stream(CHAT, STREAM, progress=progress) as answer:
        return b"".join([chunk async for chunk in answer.chunks()])


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
