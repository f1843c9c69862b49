"""What a run needs before its first trial: an agent that can be made, known prices, places that can be written."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from passgate.tasks.agents import check_agent
from passgate.tasks.agents.llm_judge import judge_model, make_llm_judge
from passgate.tasks.errors import UsageError
from passgate.tasks.history.of_run import masker_of
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.earlier_runs import open_history
from passgate.tasks.metering.ledger import PRICE_REMEDY
from passgate.tasks.model.run import Plan
from passgate.tasks.providers.endpoints import resolved_endpoints


def refuse_other_options(run: str, given: Mapping[str, Any]) -> None:
    """Raise `UsageError` with every option beside `--resume` that is not the run's own. `given` has those of the
    command line, by their fields of a request.
    """
    begun_with = RunStore.of(run).read_plan().request
    others = [
        f"--{name} {value}: the run has {_option(name, getattr(begun_with, name))}"
        for name, value in given.items()
        if value != getattr(begun_with, name)
    ]
    if others:
        remedy = "leave out the options that differ, or start a new run"
        raise UsageError(f"--resume carries {run} on with the options it started with; {'; '.join(others)}; {remedy}")


def _option(name: str, value: Any) -> str:
    return f"no --{name}" if value is None else f"--{name} {value}"


def refuse_unrunnable(plan: Plan) -> None:
    """Find out before the first trial what would keep all of them from being run or recorded. Raises `UsageError`."""
    for suites in dict.fromkeys((Path(plan.suites_folder), *(plan.folder_of(suite) for suite in plan.brought))):
        check_agent(plan.agent, suites)
        make_llm_judge(plan.policy.judge, suites)
    if plan.agent.calls_models:
        resolved_endpoints(plan.agent.upstreams, os.environ)
    _refuse_unknown_price(plan)
    open_history(plan.history_location, Path.cwd())
    recorded = plan.agent.model_dump_json()
    if masker_of(plan).json(recorded) != recorded:
        raise UsageError(
            "the agent, its command or its settings, contains the value of a secret, and passgate records agents: "
            "have the agent read it from an environment variable, which it inherits from passgate"
        )


def _refuse_unknown_price(plan: Plan) -> None:
    """Find out before the first call, where the models are known before it."""
    tasks_with_budget = sum(task.budgets.max_cost_usd is not None for task in plan.tasks)
    why = plan.needs_price or (f"{tasks_with_budget} tasks have a cost budget" if tasks_with_budget else None)
    models = {plan.agent.fixed_model} if plan.agent.calls_models else set()
    if plan.request.max_cost is not None:
        models.add(judge_model(plan.policy.judge))
    for model in models:
        if why is not None and model and plan.prices.price_of(model) is None:
            raise UsageError(f"the price of the model {model!r} is unknown and {why}: {PRICE_REMEDY}")
