"""What the meter adds to a model call, and whether many calls leave memory flat.

    python -m bench.meter_overhead [--calls 10000] [--concurrency 32] [--latency 0.2]

A provider that takes `--latency` seconds, the meter and the caller are a process each. The caller asks the provider
itself and through the meter by turns, in the same run; the difference of the medians is what the meter adds.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 0,
    "model": "bench",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello. " * 40}}],
    "usage": {"prompt_tokens": 300, "completion_tokens": 80, "total_tokens": 380},
}
QUESTION = {"model": "bench", "messages": [{"role": "user", "content": "Say hello. " * 100}]}
ROUNDS = 5


def provide(pipe: Connection, latency: float) -> None:
    """A provider that answers every request with the same reply after some time."""
    asyncio.run(_provide(pipe, latency))


async def _provide(pipe: Connection, latency: float) -> None:
    body = json.dumps(REPLY).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await reader.readline():
            length = 0
            while (line := await reader.readline()) not in {b"\r\n", b""}:
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            await reader.readexactly(length)
            await asyncio.sleep(latency)
            writer.write(head + body)
            await writer.drain()
            del request
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2048)
    pipe.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def measure(pipe: Connection, provider: int) -> None:
    """The meter, with one trial that has no budgets; tells its memory when asked."""
    asyncio.run(_measure(pipe, provider))


async def _measure(pipe: Connection, provider: int) -> None:
    from passgate.tasks.metering.cost_cap import CostCap
    from passgate.tasks.metering.meter import open_meter
    from passgate.tasks.metering.server import serving
    from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint
    from passgate.tasks.model.price import Price, PriceTable
    from passgate.tasks.model.task import Budgets

    endpoint = Endpoint(base_url=f"http://127.0.0.1:{provider}/v1")
    spec = AgentSpec(kind=AgentKind.OPENAI, target="bench", upstreams={"openai": endpoint})
    prices = PriceTable(models={"bench": Price(input=1, output=2)})
    async with open_meter(spec, prices, CostCap(), environment={}) as meter, serving(meter):
        while True:
            # A new trial for every round, as in a run: what one trial holds is gone with it.
            with meter.trial(Budgets(max_cost_usd=1e6), lambda call: False) as trial:
                pipe.send((trial.base_urls["openai"], _resident_kib()))
                await asyncio.to_thread(pipe.recv)


def _resident_kib() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


async def load(base_url: str, calls: int, concurrency: int) -> list[float]:
    """The seconds of each of `calls` calls, `concurrency` of them at a time, each worker with a client of its own."""
    import httpx

    tls = httpx.create_ssl_context()
    remaining = iter(range(calls))
    seconds: list[float] = []

    async def work() -> None:
        async with httpx.AsyncClient(verify=tls, timeout=60) as client:
            for _ in remaining:
                began = time.perf_counter()
                response = await client.post(f"{base_url}/chat/completions", json=QUESTION)
                seconds.append(time.perf_counter() - began)
                response.raise_for_status()

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
    return seconds


def started(target: Any, *arguments: Any) -> tuple[multiprocessing.Process, Connection]:
    """A process and the end of a pipe to it."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    return process, ours


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000, help="Calls through the meter, over all rounds.")
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.2, help="Seconds that the provider takes.")
    options = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    provider, provider_pipe = started(provide, options.latency)
    port = provider_pipe.recv()
    meter, meter_pipe = started(measure, port)
    each = options.calls // ROUNDS
    added = []
    print(f"{'round':>5} {'direct ms':>10} {'metered ms':>10} {'added ms':>9} {'meter MiB':>9}")
    for number in range(ROUNDS):
        base_url, memory = meter_pipe.recv()
        direct = statistics.median(asyncio.run(load(f"http://127.0.0.1:{port}/v1", each, options.concurrency)))
        metered = statistics.median(asyncio.run(load(base_url, each, options.concurrency)))
        added.append((metered - direct) * 1000)
        print(f"{number:>5} {direct * 1000:>10.2f} {metered * 1000:>10.2f} {added[-1]:>9.2f} {memory / 1024:>9.1f}")
        meter_pipe.send("next")
    _, memory = meter_pipe.recv()
    print(f"median added: {statistics.median(added):.2f} ms; memory at the end: {memory / 1024:.1f} MiB")
    for process in (meter, provider):
        process.terminate()


if __name__ == "__main__":
    main()
