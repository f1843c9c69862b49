"""Prepare: what the user asked for in, the plan of a run in its folder out."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from passgate import __version__
from passgate.tasks.agents import check_agent
from passgate.tasks.agents.judge import judge_model, make_judge
from passgate.tasks.budgets.ledger import PRICE_REMEDY
from passgate.tasks.choose import Chosen, choose
from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.find import find_agent
from passgate.tasks.history.earlier_runs import open_history
from passgate.tasks.history.revision import current_revision
from passgate.tasks.history.run_folder import RunFolder, refuse_tracked_runs
from passgate.tasks.model.agent_change import judging_agent
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.plan import agent_digest_of, make_plan
from passgate.tasks.providers.endpoints import targets_of
from passgate.tasks.reach import refuse_unreachable
from passgate.tasks.record import history_location, masker_of, refuse_unwritable


def prepare(gate: GateName, request: RunRequest) -> Plan:
    """The plan of a run, new or begun before. Whatever can be known to be wrong is found here; nothing is run.

    Where a change edits what it is judged by, it is the plan of the merge base's files; that of the change's own is
    written beside it. Raises `InputError` or `UsageError`, and `MeasurementError` for a provider that is down.
    """
    refuse_tracked_runs()
    if request.run is not None:
        return _begun(request.run, gate, request)
    own = plan_of(gate, request)
    # To check an agent is to load its code and to send it keys: before it is, it is known which one is run.
    chosen = choose(own)
    try:
        _refuse_unrunnable(chosen)
        refuse_unwritable(chosen.plan)
        if chosen.change is not None:
            _write(chosen.change)
        _write(chosen.plan)
    except BaseException:
        RunFolder(own.run_id).remove()
        raise
    return chosen.plan


def _refuse_unrunnable(chosen: Chosen) -> None:
    """Raises `UsageError`, and `MeasurementError` for a provider that is down."""
    agent = chosen.plan.base.agent
    if agent is None or not agent.by_base:
        for plan in filter(None, (chosen.change, chosen.plan)):
            refuse_unrunnable(plan)
        return refuse_unreachable(chosen.plan.agent)
    try:
        refuse_unrunnable(chosen.plan)
        refuse_unreachable(chosen.plan.agent)
    except UsageError as error:
        raise UsageError(f"{judging_agent(agent)}, and that cannot be run: {error}") from error


def _begun(run: str, gate: GateName, request: RunRequest) -> Plan:
    plan = RunFolder(run).read_plan()
    if plan.gate is not gate:
        raise UsageError(f"the run {plan.run_id} is of the gate {plan.gate!s}, not of {gate!s}")
    _refuse_signed_off(RunFolder(run))
    refuse_unwritable(plan)
    given = request.model_dump(include={"jobs", "max_cost"}, exclude_none=True)
    return plan.model_copy(update={"request": plan.request.model_copy(update=given)})


def _refuse_signed_off(folder: RunFolder) -> None:
    """What a person has decided is not undone by judging the run again."""
    try:
        verdict = folder.read_verdict()
    except StorageError:  # one that a killed run has left
        return
    if verdict is not None and verdict.sign_off is not None:
        raise UsageError(f"the run {verdict.run_id} is signed off, {verdict.sign_off.decided}: start a new run")


def refuse_other_options(run: str, given: Mapping[str, Any]) -> None:
    """Raise `UsageError` with every option beside `--resume` that is not the run's own. `given` has those of the
    command line, by their fields of a request.
    """
    begun_with = RunFolder(run).read_plan().request
    others = [
        f"--{name} {value}: the run has {_option(name, getattr(begun_with, name))}"
        for name, value in given.items()
        if value != getattr(begun_with, name)
    ]
    if others:
        remedy = "leave out what differs, or start a new run"
        raise UsageError(f"--resume carries {run} on as it was begun; {'; '.join(others)}; {remedy}")


def _option(name: str, value: Any) -> str:
    return f"no --{name}" if value is None else f"--{name} {value}"


def plan_of(gate: GateName, request: RunRequest) -> Plan:
    """The plan of a new run, from the files as they are now, whoever is to judge; nothing is written.

    Raises `InputError` or `UsageError`.
    """
    agent = find_agent(request.agent, Path(request.gates), Path(request.suites))
    plan = make_plan(gate, request, agent, revision=current_revision(Path.cwd()), version=__version__)
    return plan.model_copy(update={"agent_digest": agent_digest_of(plan)})


def refuse_unrunnable(plan: Plan) -> None:
    """Find out before the first trial what would keep all of them from being run or recorded. Raises `UsageError`."""
    for suites in dict.fromkeys((Path(plan.suites_folder), *(plan.folder_of(suite) for suite in plan.brought))):
        check_agent(plan.agent, suites)
        make_judge(plan.policy.judge, suites)
    if plan.agent.calls_models:
        targets_of(plan.agent.upstreams, os.environ)
    _refuse_unknown_price(plan)
    open_history(history_location(plan), Path.cwd())
    recorded = plan.agent.model_dump_json()
    if masker_of(plan).json(recorded) != recorded:
        raise UsageError(
            "the agent, its command or its settings, holds the value of a secret, and agents are recorded: "
            "let the agent read it from its environment, which is that of passgate"
        )


def _write(plan: Plan) -> None:
    try:
        RunFolder(plan.run_id).write_plan(plan, masker_of(plan))
    except StorageError as error:
        raise UsageError(f"{error}: nothing was run; start passgate in a folder that you can write to") from error


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
