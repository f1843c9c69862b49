"""An agent whose whole runs differ: burn-in measures what the forecast says."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.commands.burn_in import Finished, burn_in, summarise
from passgate.tasks.commands.forecast import forecast, plan_of_forecast
from passgate.tasks.forecasts.assumptions import Basis
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName
from tests.builders import write_task
from tests.function_agent import FunctionAgent

pytestmark = pytest.mark.slow

TASKS, RATE, EFFECT, RUNS = 8, 0.9, 0.05, 140


def simulated(seed: int) -> Callable[[Attempt], Awaitable[str]]:
    """An agent that does each task as often as its rate, shifted in each run by what the whole run has in common.

    Runs come one after the other, and the first trial of a task is run once in each.
    """
    runs: Counter[str] = Counter()
    trials: Counter[str] = Counter()

    async def agent(attempt: Attempt) -> str:
        task = attempt.task_id
        runs[task] += attempt.trial == 0
        trials[task] += 1
        shift = random.Random(f"{seed}/{runs[task]}").gauss(0, EFFECT)
        return "yes" if random.Random(f"{seed}/{task}/{trials[task]}").random() < RATE + shift else "no"

    return agent


def project(folder: Path) -> None:
    """A folder with golden tasks and a gate that runs one trial at a time."""
    gate = {
        "suites": ["golden"],
        "blocks_on": ["golden_regression", "task_failed", "suite_regression"],
        # With so large an alpha there are reds to compare.
        "regression": {"mode": "evidence", "alpha": 0.3, "max_trials": 6},
        "curtailment": True,
    }
    gates = {
        "version": 1,
        "suites": {"golden": {"k": 3, "metric": "pass^k", "max_steps": 5}},
        "gates": {"ci_merge": gate},
        "concurrency": {"trials": 1},
    }
    (folder / "gates.yaml").write_text(yaml.safe_dump(gates))
    for number in range(TASKS):
        write_task(folder / "suites" / "golden" / f"t{number:02}.yaml", task_id=f"t{number:02}")


def test_the_forecast_counts_what_whole_runs_have_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Thousands of trials, of which only the outcomes matter: the agent is a function of this process.
    agent = FunctionAgent(simulated(5))
    monkeypatch.setattr("passgate.tasks.execution.resources.make_agent", lambda spec, suites_folder: agent)
    project(tmp_path)
    plan = plan_of_forecast(GateName.CI_MERGE, RunRequest(agent="nop"))
    finished = Finished()
    asyncio.run(burn_in(plan, RUNS, finished, None))
    measured = summarise(plan, finished, RUNS)
    assert measured is not None
    assert finished.pool is not None
    assert (measured.first, measured.judged) == (20, RUNS - 20)
    assert measured.forecast.run_spread == pytest.approx(EFFECT, abs=0.015)
    assert measured.red_interval.low <= measured.forecast.red <= measured.red_interval.high
    rates = {f"golden/t{number:02}": RATE for number in range(TASKS)}
    with_true_rates = forecast(plan, Basis(finished.pool(()), rates, "burn-in", spread=EFFECT))
    assert measured.red_interval.low <= with_true_rates.red <= measured.red_interval.high
    without_effects = forecast(plan, Basis(finished.pool(()), rates, "burn-in"))
    assert without_effects.red < 0.75 * with_true_rates.red
