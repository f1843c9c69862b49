"""How long the trend of a large history takes, and how much memory, beside DuckDB on the same summaries.

    .venv/bin/python -m bench.history [--nights 400] [--copies 7] [--keep FOLDER]

A history has 194 trials a night for each copy of the shipped suites: `--copies 129` makes 10 million in 400 nights.
Every measurement is a process of its own. Seconds are CPU time and wall time from the first read on, without imports.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from bench.generated_history import BEGIN, write_generated

_BEGIN = """
import json, resource, sys, time
from datetime import date, timedelta
folder, since = sys.argv[1], sys.argv[2]
"""
_END = """
json.dump({"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "rows": rows,
           "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}, sys.stdout)
"""
_IMPORTS = """
from passgate.tasks.commands.trend import COLUMNS, TrendRequest, read_trend
from passgate.tasks.commands.trend_points import POINT_COLUMNS, trend_points
from passgate.tasks.history.dataset import ALL_DAYS, Days, History
def points(days, suite):
    portions = History(folder).encoded_portions(POINT_COLUMNS, days, suite)
    return [point for portion in portions for point in trend_points(portion)]
wall, cpu = time.perf_counter(), time.process_time()
"""
_BASELINE = """
from datetime import UTC, datetime
from bench.change_points import SUITES
from bench.generated_history import task_names
from passgate.tasks.history.baseline import COLUMNS, baseline_of
from passgate.tasks.history.dataset import History
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.planning.baseline import read_telling_rows
from tests.builders import a_plan, a_task
tasks = [a_task(suite=suite, task_id=name, k=SUITES[suite][1]) for suite, name in task_names()]
agent = AgentSpec(kind=AgentKind.PYTHON, target="agent:agent")
plan = a_plan(*tasks, agent=agent, run_id="20990101T000000Z-ci_merge-0000", created_at=datetime(2099, 1, 1, tzinfo=UTC))
wall, cpu = time.perf_counter(), time.process_time()
trials = read_telling_rows(plan, History(folder), COLUMNS, {"agent": str(agent)}).trials
rows = sum(task.n for task in baseline_of(plan, trials).tasks.values())
"""
_DUCKDB = """
import duckdb
duckdb.execute("set enable_progress_bar = false")
wall, cpu = time.perf_counter(), time.process_time()
query = f\"\"\"
    with trials as (select * from read_parquet('{folder}/summaries/**/*.parquet') where day >= '{since}' WHERE)
    select run_id, suite, avg(value), sum(passed), sum(failed), sum(errors), sum(total_cost), avg(loop_rate),
           quantile_disc(flatten_times, [0.5, 0.95])
    from (select *, unnest(wall_times) as flatten_times from trials) group by run_id, suite
\"\"\"
rows = len(duckdb.sql(query).fetchall())
"""
QUESTIONS = {
    "last 30 days of one suite": f"{_IMPORTS}rows = len(points(Days(since), 'golden'))",
    "all runs": f"{_IMPORTS}rows = len(points(ALL_DAYS, None))",
    "`passgate trend`": f"{_IMPORTS}rows = len(read_trend(History(folder), TrendRequest()).points)",
    "the baseline of a plan of the shipped sizes": _BASELINE,
    "last 30 days of one suite, DuckDB": _DUCKDB.replace("WHERE", "and suite = 'golden'"),
    "all runs, DuckDB": _DUCKDB.replace("{since}", "").replace("WHERE", ""),
}


def measured(folder: str, since: str) -> list[str]:
    """A row of the table for each question."""
    lines = []
    for name, code in QUESTIONS.items():
        done = subprocess.run(
            [sys.executable, "-c", _BEGIN + code + _END, folder, since], capture_output=True, text=True, check=True
        )
        result = json.loads(done.stdout)
        lines.append(f"| {name} | {result['seconds']:.2f} | {result['cpu']:.2f} | {result['megabytes']:.0f} |")
        print(lines[-1], result["rows"], file=sys.stderr)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nights", type=int, default=400)
    parser.add_argument("--copies", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="make the history here, or take the one that is here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary) / "history"
        if not folder.exists():
            write_generated(str(folder), options.nights, 1, copies=options.copies)
        since = f"{BEGIN + timedelta(days=options.nights - 30):%Y-%m-%d}"
        print("| question | seconds | CPU seconds | MB |\n|---|---|---|---|")
        print("\n".join(measured(str(folder), since)))


if __name__ == "__main__":
    main()
