"""What the forecast says is what happens: simulated agents, burnt in, beside their forecast."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import yaml

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.commands.burn_in import Finished, burn_in, summarise
from passgate.tasks.commands.forecast import forecast, forecast_plan
from passgate.tasks.forecasts.assumptions import Basis
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.forecast import BurnIn
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.stats.estimators import wilson_interval
from tests.builders import write_task
from tests.function_agent import FunctionAgent

pytestmark = pytest.mark.slow

RATES = {"a": 0.99, "b": 0.97, "c": 0.95, "d": 0.93, "e": 0.9, "f": 0.85}
"""How often the simulated agent does each task."""
STRICT = {"mode": "strict"}
# With so large an alpha there are reds to compare.
EVIDENCE = {"mode": "evidence", "alpha": 0.3, "max_trials": 9}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_gate(folder: Path, tasks: Iterable[str], regression: dict[str, object], *also: str) -> None:
    """Write golden tasks and a gate that blocks on more rules."""
    gate = {
        "suites": ["golden"],
        "blocks_on": ["golden_regression", "task_failed", *also],
        "regression": regression,
        "curtailment": True,
    }
    gates = {
        "version": 1,
        "suites": {"golden": {"k": 3, "metric": "pass^k", "max_steps": 5}},
        "gates": {"ci_merge": gate},
        "concurrency": {"trials": 6},
    }
    (folder / "gates.yaml").write_text(yaml.safe_dump(gates))
    for task in tasks:
        write_task(folder / "suites" / "golden" / f"{task}.yaml", task_id=task)


def burnt_in(
    passes: Callable[[Attempt], bool], runs: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[BurnIn, Baseline, Plan]:
    """What so many runs of an agent have measured, and the baseline that they are."""

    async def agent(attempt: Attempt) -> str:
        return "yes" if passes(attempt) else "no"

    # Thousands of trials, of which only the outcomes matter: the agent is a function of this process, and no trial
    # waits for the disk.
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setattr("passgate.tasks.execution.resources.make_agent", lambda *_: FunctionAgent(agent))
    plan = forecast_plan(GateName.CI_MERGE, RunRequest(agent="nop"))
    finished = Finished()
    asyncio.run(burn_in(plan, runs, finished, None))
    measured = summarise(plan, finished, runs)
    assert measured is not None
    assert finished.pool is not None
    assert (measured.first, measured.judged) == (20, runs - 20)
    return measured, finished.pool(()), plan


@pytest.mark.parametrize(("regression", "runs", "seed"), [(EVIDENCE, 100, 2), (STRICT, 120, 3)])
def test_the_forecast_agrees_with_burn_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch, regression: dict[str, object], runs: int, seed: int
) -> None:
    write_gate(folder, RATES, regression)
    trials: Counter[str] = Counter()

    def passes(attempt: Attempt) -> bool:
        trials[attempt.task_id] += 1
        return random.Random(f"{seed}/{attempt.task_id}/{trials[attempt.task_id]}").random() < RATES[attempt.task_id]

    measured, baseline, plan = burnt_in(passes, runs, monkeypatch)
    rates = {f"golden/{task}": rate for task, rate in RATES.items()}
    low, high = wilson_interval(measured.judged, measured.red, 0.99)
    for said in (measured.forecast, forecast(plan, Basis(baseline, rates, "burn-in"))):
        assert low <= said.red <= high
        assert said.effort.trials == pytest.approx(measured.trials, rel=0.06)
    assert not (folder / ".passgate" / "history").exists()
    assert not (folder / ".passgate" / "runs").exists()
    assert len(list((folder / measured.folder).glob("*.jsonl"))) == runs


def test_the_forecast_counts_what_whole_runs_have_in_common(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent does each task as often as its rate, shifted in each run by what the whole run has in common."""
    tasks, rate, effect, runs = [f"t{number:02}" for number in range(8)], 0.9, 0.05, 100
    write_gate(folder, tasks, {**EVIDENCE, "max_trials": 6}, "suite_regression")
    run_of: Counter[str] = Counter()
    trials: Counter[str] = Counter()

    def passes(attempt: Attempt) -> bool:
        # Runs come one after the other, and the first trial of a task is run once in each.
        run_of[attempt.task_id] += attempt.trial == 0
        trials[attempt.task_id] += 1
        shift = random.Random(f"5/{run_of[attempt.task_id]}").gauss(0, effect)
        return random.Random(f"5/{attempt.task_id}/{trials[attempt.task_id]}").random() < rate + shift

    measured, baseline, plan = burnt_in(passes, runs, monkeypatch)
    interval, rates = measured.red_interval, {f"golden/{task}": rate for task in tasks}
    assert measured.forecast.run_spread == pytest.approx(effect, abs=0.015)
    assert interval.low <= measured.forecast.red <= interval.high
    with_true_rates = forecast(plan, Basis(baseline, rates, "burn-in", spread=effect))
    assert interval.low <= with_true_rates.red <= interval.high
    without_effects = forecast(plan, Basis(baseline, rates, "burn-in"))
    assert without_effects.red < 0.75 * with_true_rates.red
