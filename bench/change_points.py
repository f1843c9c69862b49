"""How many planted changes are found, and how often nothing is told of clean histories, beside ruptures and Otava.

    .venv/bin/python -m bench.change_points [--histories 100] [--otava PYTHON] [--write docs/statistics.md]

`PYTHON` is an interpreter with apache-otava installed; without it Otava is left out. The histories have the shipped
suites' sizes. Trials of a task are independent. Of latency and cost each trial, each night and each task has its share
of noise, and one night in fifty is slow.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from passgate.tasks.stats.change_points import ChangePoint, Floats, Levels, PassRates, Series, change_points

SUITES = {"golden": (8, 3), "adversarial": (9, 10), "open_ended": (8, 5), "failure_replays": (8, 5)}
NIGHTS = 60
LONG = 400
NEAR = 3


class History(NamedTuple):
    """Nights of generated trials: a row per task, a column per night."""

    passed: Floats
    n: Floats
    latency: Floats  # Mean logarithm of seconds
    cost: Floats
    groups: Floats


@dataclass(frozen=True)
class Planted:
    """A change of one task, or of a suite, from a night on."""

    name: str
    kind: str  # `passed`, `latency` or `cost`
    series: int
    at: int
    size: float
    nights: int = 1


def generated(nights: int, seed: int, changes: tuple[Planted, ...] = ()) -> History:
    """A history with these changes; pass rates between 90 % and 100 %, but for one task of 60 % in each suite."""
    random = np.random.default_rng(seed)
    trials = np.concatenate([np.full(tasks, k) for tasks, k in SUITES.values()]).astype(float)
    suites = np.concatenate([np.full(tasks, number) for number, (tasks, _) in enumerate(SUITES.values())])
    groups = (suites[None, :] == np.arange(len(SUITES))[:, None]).astype(float)
    rates = 1 - 0.1 * random.random(len(trials)) ** 2
    rates[np.flatnonzero(np.diff(suites, prepend=-1))] = 0.6  # a flaky task in each suite
    chance = np.repeat(rates[:, None], nights, axis=1)
    night = np.arange(nights)
    levels = {"latency": np.zeros((len(trials), nights)), "cost": np.zeros((len(trials), nights))}
    for one in changes:
        shape = np.clip((night - one.at + 1) / one.nights, 0, 1)
        rows = np.flatnonzero(groups[one.series - len(trials)]) if one.series >= len(trials) else [one.series]
        if one.kind == "passed":
            chance[rows] = np.clip(chance[rows] - one.size * shape, 0.0, 1.0)
        else:
            levels[one.kind][rows] += one.size * shape
    n = np.repeat(trials[:, None], nights, axis=1)
    passed = random.binomial(n.astype(int), chance).astype(float)
    slow = np.where(random.random(nights) < 0.02, 0.7, 0.0)
    for kind, spread, of_night in (("latency", 0.4, 0.08), ("cost", 0.25, 0.03)):
        levels[kind] += random.normal(0, spread, n.shape) / np.sqrt(n) + random.normal(0, of_night, nights)
        levels[kind] += random.normal(1, 1, (len(trials), 1))
    return History(passed, n, levels["latency"] + slow, levels["cost"], groups)


def by_passgate(history: History) -> dict[str, list[ChangePoint]]:
    """The changes of each kind; the series of a kind are the tasks, then the suites."""
    members = history.groups / history.groups.sum(axis=1, keepdims=True)
    levels = [np.vstack([one, members @ one]) for one in (history.latency, history.cost)]
    n, passed = (np.vstack([one, history.groups @ one]) for one in (history.n, history.passed))
    families: list[Series] = [PassRates(passed / n, n), *(Levels(one, np.log(1.1)) for one in levels)]
    return dict(zip(("passed", "latency", "cost"), change_points(families), strict=True))


PLANTED = (
    Planted("regression of a task, 40 points", "passed", 12, 150, 0.4),
    Planted("regression of a task, 70 points, the last 4 nights", "passed", 20, LONG - 4, 0.7),
    Planted("fall of a whole suite, 10 points", "passed", 33 + 3, 250, 0.1),
    Planted("latency of a suite, +40 %", "latency", 33 + 2, 200, 0.34),
    Planted("latency of a task, +60 %", "latency", 5, 300, 0.47),
    Planted("drift of a suite's cost, +80 % in 64 nights", "cost", 33 + 3, 280, 0.59, 64),
    Planted("cost of a task, +30 %", "cost", 10, 100, 0.26),
)
Found = dict[tuple[str, int], list[int]]  # Of each kind and series, the nights of its changes


def found_by_passgate(history: History) -> Found:
    return {
        (kind, series): [change.at for change in changes if change.series == series]
        for kind, changes in by_passgate(history).items()
        for series in {change.series for change in changes}
    }


def all_series(history: History) -> dict[tuple[str, int], Floats]:
    """Every series as the numbers that tools without a binomial likelihood see."""
    members = history.groups / history.groups.sum(axis=1, keepdims=True)
    shares = history.passed / history.n
    kinds = {"passed": shares, "latency": history.latency, "cost": history.cost}
    return {
        (kind, number): row
        for kind, rows in kinds.items()
        for number, row in enumerate(np.vstack([rows, members @ rows]))
    }


def found_by_ruptures(history: History, penalty: float) -> Found:
    import ruptures

    found = {}
    for key, row in all_series(history).items():
        spread = np.median(np.abs(np.diff(row))) / 0.9539 or np.std(row) or 1.0
        bounds = (
            ruptures.KernelCPD(kernel="linear", min_size=2).fit(row / spread).predict(pen=penalty * np.log(len(row)))
        )
        found[key] = bounds[:-1]
    return found


_OTAVA = """
import json, sys
from otava.analysis import compute_change_points
series = json.load(sys.stdin)
found = []
for row in series["rows"]:
    points, _ = compute_change_points(row, window_len=50, max_pvalue=series["pvalue"], min_magnitude=0.0)
    found.append([int(point.index) for point in points])
json.dump(found, sys.stdout)
"""


def found_by_otava(history: History, python: str, pvalue: float) -> Found:
    series = all_series(history)
    asked = json.dumps({"rows": [[float(one) for one in row] for row in series.values()], "pvalue": pvalue})
    done = subprocess.run([python, "-c", _OTAVA], input=asked, capture_output=True, text=True, check=True)
    return dict(zip(series, json.loads(done.stdout), strict=True))


def hits(found: Found) -> list[bool]:
    """Whether each planted change is found in its series within `NEAR` nights."""
    return [any(abs(night - one.at) <= NEAR for night in found.get((one.kind, one.series), ())) for one in PLANTED]


def measured(find: Callable[[History], Found], histories: int, planted: int) -> dict[str, Any]:
    clean = [find(generated(NIGHTS, seed)) for seed in range(histories)]
    told = [hits(find(generated(LONG, 10_000 + seed, PLANTED))) for seed in range(planted)]
    return {
        "clean histories with an alarm": sum(any(found.values()) for found in clean),
        "alarms": sum(len(nights) for found in clean for nights in found.values()),
        "found": np.sum(told, axis=0).tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--planted", type=int, default=10)
    parser.add_argument("--otava", help="a Python with apache-otava", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    tools: dict[str, Callable[[History], Found]] = {"passgate": found_by_passgate}
    for penalty in (3, 6, 12):
        tools[f"ruptures KernelCPD, {penalty} ln n"] = partial(found_by_ruptures, penalty=penalty)
    if options.otava:
        for pvalue in (0.001, 0.000001):
            tools[f"Otava, p < {pvalue:g}"] = partial(found_by_otava, python=options.otava, pvalue=pvalue)
    lines = [
        f"| tool | of {options.histories} clean histories with an alarm | alarms in them | "
        + " | ".join(one.name for one in PLANTED)
        + " |",
        "|---|" + "---|" * (2 + len(PLANTED)),
    ]
    for name, find in tools.items():
        if options.only in name:
            result = measured(find, options.histories, options.planted)
            cells = (f"{count}/{options.planted}" for count in result["found"])
            lines.append(
                f"| {name} | {result['clean histories with an alarm']} | {result['alarms']} | {' | '.join(cells)} |"
            )
            print(lines[-1], file=sys.stderr)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
