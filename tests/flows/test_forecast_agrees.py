"""What the forecast says is what happens: a simulated agent, burnt in, beside its forecast."""

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
from passgate.tasks.model.forecast import BurnIn, Forecast
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.stats.estimators import wilson_interval
from tests.builders import write_task
from tests.function_agent import FunctionAgent

pytestmark = pytest.mark.slow

RATES = {"a": 0.99, "b": 0.97, "c": 0.95, "d": 0.93, "e": 0.9, "f": 0.85}
"""How often the simulated agent does each task."""
STRICT = {"mode": "strict"}
EVIDENCE = {"mode": "evidence", "alpha": 0.3, "max_trials": 9}
"""With so large an alpha there are reds to compare."""


def simulated(seed: int) -> Callable[[Attempt], Awaitable[str]]:
    """An agent that does each task as often as its rate, by a random number for each of its trials."""
    trials: Counter[str] = Counter()

    async def agent(attempt: Attempt) -> str:
        trials[attempt.task_id] += 1
        chance = random.Random(f"{seed}/{attempt.task_id}/{trials[attempt.task_id]}").random()
        return "yes" if chance < RATES[attempt.task_id] else "no"

    return agent


def project(folder: Path, regression: dict[str, object]) -> None:
    """A folder with six golden tasks and a gate."""
    gate = {
        "suites": ["golden"],
        "blocks_on": ["golden_regression", "task_failed"],
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
    for task in RATES:
        write_task(folder / "suites" / "golden" / f"{task}.yaml", task_id=task)


def burnt_in(folder: Path, regression: dict[str, object], *, runs: int) -> tuple[BurnIn, Forecast]:
    """What was measured, and the forecast of the agent's true rates against the same baseline."""
    project(folder, regression)
    plan = plan_of_forecast(GateName.CI_MERGE, RunRequest(agent="nop"))
    finished = Finished()
    asyncio.run(burn_in(plan, runs, finished, None))
    result = summarise(plan, finished, runs)
    assert result is not None
    assert finished.pool is not None
    rates = {f"golden/{task}": rate for task, rate in RATES.items()}
    return result, forecast(plan, Basis(finished.pool(()), rates, "burn-in"))


@pytest.mark.parametrize(
    ("regression", "runs", "seed"),
    [
        pytest.param(EVIDENCE, 120, 2, id="evidence"),
        pytest.param(STRICT, 600, 3, id="strict, often", marks=pytest.mark.slow),
        pytest.param(EVIDENCE, 600, 4, id="evidence, often", marks=pytest.mark.slow),
    ],
)
def test_the_forecast_agrees_with_burn_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, regression: dict[str, object], runs: int, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    # Thousands of trials, of which only the outcomes matter: the agent is a function of this process.
    agent = FunctionAgent(simulated(seed))
    monkeypatch.setattr("passgate.tasks.execution.resources.make_agent", lambda spec, suites_folder: agent)
    measured, at_true_rates = burnt_in(tmp_path, regression, runs=runs)
    assert (measured.first, measured.judged) == (20, runs - 20)
    low, high = wilson_interval(measured.judged, measured.red, 0.99)
    for said in (measured.forecast, at_true_rates):
        assert low <= said.red <= high
        assert said.effort.trials == pytest.approx(measured.trials, rel=0.06)
    assert not (tmp_path / ".passgate" / "history").exists()
    assert not (tmp_path / ".passgate" / "runs").exists()
    assert len(list((tmp_path / measured.folder).glob("*.jsonl"))) == runs
