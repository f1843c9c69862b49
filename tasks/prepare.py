"""Prepare: what the user asked for in, the plan of a run in its folder out."""

import os
from pathlib import Path

from passgate import __version__
from passgate.tasks.agents import make_agent
from passgate.tasks.agents.judge import judge_model, make_judge
from passgate.tasks.budgets.ledger import PRICE_REMEDY
from passgate.tasks.errors import UsageError
from passgate.tasks.find import find_agent
from passgate.tasks.history.dataset import History
from passgate.tasks.history.masking import Masker
from passgate.tasks.history.revision import current_revision
from passgate.tasks.history.run_folder import RunFolder
from passgate.tasks.load import load_prices, make_plan
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.providers.endpoints import targets_of
from passgate.tasks.record import history_location


def prepare(gate: GateName, request: RunRequest) -> Plan:
    """The plan of a run, new or begun before. Whatever can be known to be wrong is found here; nothing is run.

    Raises `InputError` or `UsageError`.
    """
    if request.run is not None:
        plan = RunFolder(request.run).read_plan()
        if plan.gate is not gate:
            raise UsageError(f"the run {plan.run_id} is of the gate {plan.gate!s}, not of {gate!s}")
        given = request.model_dump(include={"jobs", "max_cost"}, exclude_none=True)
        return plan.model_copy(update={"request": plan.request.model_copy(update=given)})
    agent = find_agent(request.agent, Path(request.gates), Path(request.suites))
    make_agent(agent, Path(request.suites))
    if agent.calls_models:
        targets_of(agent.upstreams, os.environ)
    plan = make_plan(gate, request, agent, revision=current_revision(Path.cwd()), version=__version__)
    plan = plan.model_copy(update={"prices": load_prices(Path(request.gates))})
    make_judge(plan.policy.judge, Path(plan.suites_folder))
    _refuse_unknown_price(plan)
    History(history_location(plan))
    masker = Masker.of_environment(plan.policy.secrets)
    recorded = agent.model_dump_json()
    if masker.json(recorded) != recorded:
        raise UsageError(
            "the agent, its command or its settings, holds the value of a secret, and agents are recorded: "
            "let the agent read it from its environment, which is that of passgate"
        )
    RunFolder(plan.run_id).write_plan(plan, masker)
    return plan


def _refuse_unknown_price(plan: Plan) -> None:
    """Find out before the first call, where the models are known before it."""
    tasks_with_budget = sum(task.budgets.max_cost_usd is not None for task in plan.tasks)
    why = plan.needs_price or (f"{tasks_with_budget} tasks have a cost budget" if tasks_with_budget else None)
    models = {plan.agent.fixed_model} if plan.agent.calls_models else set()
    if plan.request.max_cost is not None:
        models.add(judge_model(plan.policy.judge))
    for model in models:
        if why is not None and model and plan.prices.price_of(model) is None:
            raise UsageError(f"the price of the model {model!r} is not known and {why}: {PRICE_REMEDY}")
