"""How a run speeds up with worker processes, and which part of it is orchestration: `python -m bench.scale_out`.

It runs a gate over an agent that answers after a fixed time, with `--runner process` and each number of workers. Every
worker runs so many trials at once. `--out` writes the result, `--page` the table of docs/scaling.md.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.doc_tables import write_between

TASK = """task_id: t{number}
suite: golden
description: Say yes.
inputs: {{prompt: Say yes.}}
graders: [{{type: output_check, contains: ["yes"]}}]
tracked_metrics: [latency]
"""
GATES = """version: 1
suites:
  golden: {{k: {k}, metric: pass^k, max_steps: 20}}
gates:
  ci_merge: {{suites: [golden], blocks_on: [task_failed]}}
"""
BEGIN, END = "<!-- scale-out: begin -->", "<!-- scale-out: end -->"


def main() -> None:
    """Measure, print the table, and write what was asked for."""
    options = _options()
    result = {
        "trials": options.trials,
        "seconds_of_a_trial": options.seconds,
        "at_once_of_a_worker": options.at_once,
        "processors": os.cpu_count(),
        "runs": [_measured(options, workers) for workers in options.workers],
    }
    table = _table(result)
    print(table)
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if options.page:
        write_between(options.page, (BEGIN, END), table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=0.2, help="of one trial")
    parser.add_argument("--at-once", type=int, default=16, help="trials at once in each worker")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--k", type=int, default=5, help="trials of each task")
    parser.add_argument("--out", type=Path, help="the result as JSON, as in bench/results/scale_out.json")
    parser.add_argument("--page", type=Path, help="the page that has the table: docs/scaling.md")
    return parser.parse_args()


def _measured(options: argparse.Namespace, workers: int) -> dict[str, Any]:
    """One run with so many workers: its seconds, those in which trials ran, and the share between batches."""
    with tempfile.TemporaryDirectory() as name, _agent(options.seconds) as port:
        folder = Path(name) / "project"
        _write_project(folder, options.trials // options.k, options.k)
        command = [sys.executable, "-m", "passgate", "run", "ci_merge", "--agent", f"http:http://127.0.0.1:{port}/"]
        runner = ["--runner", "process", "--workers", str(workers), "--jobs", str(workers * options.at_once)]
        environment = {**os.environ, "PREFECT_HOME": str(Path(name) / "prefect")}
        environment.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "240")
        began = time.perf_counter()
        ended = subprocess.run(
            [*command, *runner], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - began
        if ended.returncode != 0 or "without Prefect" in ended.stderr:
            raise SystemExit(ended.stdout + ended.stderr)
        batches = _batches(folder)
    lasted = max(end for _, end in batches) - min(start for start, _ in batches)
    in_batches = sum(end - start for start, end in batches)
    return {
        "workers": workers,
        "command_seconds": round(seconds, 2),
        "trials_seconds": round(lasted, 2),
        "least_seconds": round(options.trials * options.seconds / (workers * options.at_once), 2),
        "batches": len(batches),
        "orchestration": round(1 - in_batches / (lasted * workers), 4),
    }


def _write_project(folder: Path, tasks: int, k: int) -> None:
    suite = folder / "suites" / "golden"
    suite.mkdir(parents=True)
    (folder / "gates.yaml").write_text(GATES.format(k=k), encoding="utf-8")
    for number in range(tasks):
        (suite / f"t{number}.yaml").write_text(TASK.format(number=number), encoding="utf-8")


def _batches(folder: Path) -> list[tuple[float, float]]:
    """When the first trial of each batch began and when its last one ended, in seconds."""
    return [_span(part) for part in folder.glob(".passgate/runs/*/journal*.jsonl") if part.stat().st_size]


def _span(part: Path) -> tuple[float, float]:
    trials = [json.loads(line)["trial"] for line in part.read_bytes().splitlines()]
    began = [datetime.fromisoformat(one["started_at"]).timestamp() for one in trials]
    seconds = [one["metrics"]["wall_time_seconds"] for one in trials]
    return min(began), max(start + lasted for start, lasted in zip(began, seconds, strict=True))


@contextmanager
def _agent(seconds: float) -> Iterator[int]:
    """The port of a service that says yes after some seconds, to as many as ask."""
    loop = asyncio.new_event_loop()
    reply = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 17\r\n\r\n{"output": "yes"}'

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
                await asyncio.sleep(seconds)
                writer.write(reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = loop.run_until_complete(asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _table(result: dict[str, Any]) -> str:
    runs: Sequence[dict[str, Any]] = result["runs"]
    first = runs[0]["trials_seconds"]
    at_once, seconds = result["at_once_of_a_worker"], result["seconds_of_a_trial"]
    lines = [
        (
            f"{result['trials']} trials of {seconds * 1000:g} ms, {at_once} at once in each worker, "
            f"{result['processors']} processors. `least` is the time of the agent alone. `orchestration` is the share "
            "of the workers' time, from the first trial to the last, in which a worker has no batch: it starts, it "
            "waits for its next batch, or none is left."
        ),
        "",
        "| workers | batches | command, s | trials, s | least, s | speed-up | orchestration |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines.extend(
        f"| {run['workers']} | {run['batches']} | {run['command_seconds']:.1f} | {run['trials_seconds']:.1f} | "
        f"{run['least_seconds']:.1f} | {first / run['trials_seconds']:.2f} | {run['orchestration']:.1%} |"
        for run in runs
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
