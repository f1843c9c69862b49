"""Histories of generated trials, written as passgate writes them, for the tests of the trend and `bench.history`."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from bench.change_points import SUITES, Planted, generated
from passgate.tasks.history.columns import SCHEMA_VERSION, arrow_schema
from passgate.tasks.history.dataset import History

BEGIN = datetime(2025, 1, 1, 2, tzinfo=UTC)
AGENT = "python:agent:agent"


def night_id(night: int) -> str:
    """The id of a night's run."""
    return f"{BEGIN + timedelta(days=night):%Y%m%dT%H%M%SZ}-nightly-{night:04x}"


def commit_of(night: int) -> str:
    """A commit for every second night."""
    return f"{night // 2:040x}"


def task_names() -> list[tuple[str, str]]:
    """The suite and the task_id of each task, as the rows of a generated history have them."""
    return [(suite, f"{suite[:4]}-{number}") for suite, (tasks, _) in SUITES.items() for number in range(tasks)]


def write_generated(location: str, nights: int, seed: int, changes: tuple[Planted, ...] = (), copies: int = 1) -> None:
    """Write a history of the shipped sizes, each task so many times under names of its own, which alone the
    first time has the changes.
    """
    history = History(location)
    for night, table in enumerate(tables(nights, seed, changes, copies)):
        history.write_run(night_id(night), table, {})


def tables(nights: int, seed: int, changes: tuple[Planted, ...] = (), copies: int = 1) -> Iterator[pa.Table]:
    """The trials of each night."""
    random = np.random.default_rng(seed + 1)
    # The copies change by themselves: equal tasks would make every suite swing with its noisiest one.
    made = [generated(nights, seed + 10_000 * copy, () if copy else changes) for copy in range(copies)]
    passes, latency, cost = (np.vstack([getattr(one, name) for one in made]) for name in ("passed", "latency", "cost"))
    names = task_names()
    ks = made[0].n[:, 0].astype(int)
    task = np.repeat(np.arange(len(names)), ks)
    trial = np.concatenate([np.arange(k) for k in ks])
    task, trial = np.tile(task, copies), np.tile(trial, copies)
    copy = np.repeat(np.arange(copies), len(task) // copies)
    suites = pa.array([suite for suite, _ in names])
    ids = pa.array([f"{name}-{which}" if which else name for which in range(copies) for _, name in names])
    for night in range(nights):
        began = BEGIN + timedelta(days=night)
        row = task + copy * len(names)
        passed = trial < passes[row, night]
        noise = random.normal(0, 0.3, (2, len(task)))
        columns = {
            "schema_version": SCHEMA_VERSION,
            "run_id": night_id(night),
            "gate": "nightly",
            "suite": suites.take(pa.array(task)),
            "day": f"{began:%Y-%m-%d}",
            "task_id": ids.take(pa.array(row)),
            "task_digest": "t" * 64,
            "grader_digest": "g" * 64,
            "file": "suites/a.yaml",
            "line": 1,
            "agent": AGENT,
            "agent_digest": "a" * 64,
            "model": "small",
            "git_commit": commit_of(night),
            "git_branch": "main",
            "git_dirty": False,
            "passgate_version": "0.1.0",
            "policy_digest": "p" * 64,
            "trial": trial,
            "k": ks[task],
            "confirming": False,
            "metric": "pass^k",
            "status": np.where(passed, "passed", "failed"),
            "score": passed.astype(float),
            "reason": "",
            "attempts": 1,
            "isolation": "bubblewrap",
            "started_at": began,
            "transcript_digest": "d" * 64,
            "steps": random.integers(3, 20, len(task)),
            "loop_rate": random.random(len(task)) / 10,
            "retry_rate": random.random(len(task)) / 10,
            "tool_call_accuracy": random.random(len(task)),
            "wall_time_seconds": np.exp(latency[row, night] + noise[0]),
            "cost": np.exp(cost[row, night] + noise[1]) / 100,
        }
        yield pa.table(
            {field.name: _column(columns.get(field.name), field.type, len(task)) for field in arrow_schema()}
        )


def _column(value: object, kind: pa.DataType, rows: int) -> pa.Array:
    if isinstance(value, (np.ndarray, pa.Array)):
        return pa.array(value, kind) if isinstance(value, np.ndarray) else value
    return pa.repeat(pa.scalar(value, kind), rows)
