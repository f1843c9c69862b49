"""What passgate costs per trial beside the agent: `python -m bench.trial_overhead [--tasks 100] [--k 5]`.

The same agent, which answers at once, is asked by a bare loop that checks its answer and by passgate's own run of a
batch: sandbox, grading, journal with fsync. Loading and the measuring of the trials are timed beside it. Prefect and
the start of Python are left out; `python -m bench.start_up` has those.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from passgate.tasks.agents import parse_agent
from passgate.tasks.execution.coordinator import RunState, planned_batches
from passgate.tasks.execution.resources import open_resources
from passgate.tasks.execution.scheduler import Scheduler
from passgate.tasks.execution.worker import Worker
from passgate.tasks.formats.loading import load_policy, load_tasks
from passgate.tasks.history.journal import FileJournal, read_journal
from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.stats.measurement import measure_trials

AT_ONCE = 32
ANSWER = "The order is confirmed. Code: OK-17"
AGENT = f"""
async def agent(attempt):
    return {{"messages": [{{"role": "assistant", "content": "{ANSWER}"}}]}}
"""
GATES = {
    "version": 1,
    "suites": {"golden": {"k": 1, "metric": "pass^k", "max_steps": 20}},
    "gates": {"ci_merge": {"suites": ["golden"]}},
}


def write_repository(folder: Path, tasks: int, k: int) -> None:
    """A suites folder with as many tasks, an agent and a gates file."""
    golden = folder / "suites" / "golden"
    golden.mkdir(parents=True)
    for number in range(tasks):
        task = {
            "task_id": f"task_{number}",
            "suite": "golden",
            "description": "Answer with the order's code.",
            "inputs": {"prompt": f"What is the code of order {number}?"},
            "trials": {"k": k},
            "graders": [{"type": "output_check", "contains": ["confirmed"], "matches": "Code: OK-"}],
            "tracked_metrics": ["tokens"],
        }
        (golden / f"task_{number}.yaml").write_text(json.dumps(task), encoding="utf-8")
    (folder / "gates.yaml").write_text(json.dumps(GATES), encoding="utf-8")
    (folder / "bench_agent.py").write_text(AGENT, encoding="utf-8")


async def bare(tasks: tuple[EvalTask, ...]) -> None:
    """Ask and check, nothing else."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with limit:
            await asyncio.sleep(0)
            assert "confirmed" in ANSWER

    await asyncio.gather(*(one() for task in tasks for _ in range(task.k)))


async def gated(tasks: tuple[EvalTask, ...]) -> None:
    """Run the trials as a gate does, without Prefect."""
    suites = Path("suites")
    spec, policy = parse_agent("python:bench_agent:agent"), load_policy(Path("gates.yaml"))
    with FileJournal(Path("journal.jsonl")) as journal:
        async with open_resources(spec, suites, policy, prices=PriceTable(), cost_cap=CostCap()) as bench:
            worker = Worker(
                tasks={task.task_id: task for task in tasks},
                resources=dict.fromkeys(Suite, bench),
                run_state=RunState(journal=journal),
            )
            scheduler = Scheduler(AT_ONCE)
            await asyncio.gather(*(worker.run(batch, scheduler) for batch in planned_batches(tasks)))


def timed(name: str, trials: int, work: Callable[[], object]) -> None:
    """Print the time of some work, whole and per trial."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{name:<8} {wall:7.3f} s  {1000 * wall / trials:7.3f} ms/trial  {1000 * cpu / trials:7.3f} CPU ms/trial")


def run(work: Callable[[tuple[EvalTask, ...]], Awaitable[None]], tasks: tuple[EvalTask, ...]) -> None:
    async def main() -> None:
        await work(tasks)

    asyncio.run(main())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--k", type=int, default=5)
    options = parser.parse_args()
    trials = options.tasks * options.k
    with tempfile.TemporaryDirectory() as folder:
        write_repository(Path(folder), options.tasks, options.k)
        os.chdir(folder)
        policy = load_policy(Path("gates.yaml"))
        tasks = load_tasks(Path("suites"), policy)
        print(f"{options.tasks} tasks x {options.k} trials, {AT_ONCE} at once")
        timed("bare", trials, lambda: run(bare, tasks))
        timed("load", trials, lambda: load_tasks(Path("suites"), policy))
        timed("run", trials, lambda: run(gated, tasks))
        finished, _ = read_journal(Path("journal.jsonl"))
        timed("measure", trials, lambda: measure_trials(tasks, [one.trial for one in finished]))
        os.chdir("/")


if __name__ == "__main__":
    main()
