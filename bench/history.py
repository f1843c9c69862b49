"""How long it takes to read a history, and how much memory.

    .venv/bin/python -m bench.history [--nights 400] [--copies 1] [--keep FOLDER]

A history has 194 trials a night for each copy of the shipped suites. Every measurement is a process of its own. Seconds
are CPU time and wall time from the first read on, without imports.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.generated_history import write_generated

_BEGIN = """
import json, resource, sys, time
from datetime import UTC, datetime
from bench.change_points import SUITES
from bench.generated_history import task_names
from passgate.tasks.commands.history import stored_runs
from passgate.tasks.commands.trend import TrendRequest, read_trend
from passgate.tasks.history.dataset import History
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.planning.baseline import pooled_baseline, read_earlier_runs
from tests.builders import a_plan, a_task
tasks = [a_task(suite=suite, task_id=name, k=SUITES[suite][1]) for suite, name in task_names()]
agent = AgentSpec(kind=AgentKind.PYTHON, target="agent:agent")
plan = a_plan(*tasks, agent=agent, run_id="20990101T000000Z-ci_merge-0000", created_at=datetime(2099, 1, 1, tzinfo=UTC))
history = History(sys.argv[1])
wall, cpu = time.perf_counter(), time.process_time()
"""
_END = """
json.dump({"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "rows": rows,
           "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}, sys.stdout)
"""
QUESTIONS = {
    "`passgate trend`": "rows = len(read_trend(history, TrendRequest()).points)",
    "the baseline of a plan of 33 tasks": "rows = len(pooled_baseline(plan, read_earlier_runs(plan, history)).runs)",
    "`passgate history list`": "rows = len(stored_runs(history.summaries()))",
}


def measured(folder: str) -> list[str]:
    """Return a row of the table for each question."""
    lines = []
    for name, code in QUESTIONS.items():
        done = subprocess.run(
            [sys.executable, "-c", _BEGIN + code + _END, folder], capture_output=True, text=True, check=True
        )
        result = json.loads(done.stdout)
        lines.append(f"| {name} | {result['seconds']:.1f} | {result['cpu']:.1f} | {result['megabytes']:.0f} |")
        print(lines[-1], result["rows"], file=sys.stderr)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nights", type=int, default=400)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="make the history here, or take the one that is here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary) / "history"
        if not folder.exists():
            write_generated(str(folder), options.nights, 1, copies=options.copies)
        print("| question | seconds | CPU seconds | MB |\n|---|---|---|---|")
        print("\n".join(measured(str(folder))))


if __name__ == "__main__":
    main()
