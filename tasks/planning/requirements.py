"""Check before the first trial that every trial can run, be recorded and prove something."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from passgate.tasks.agents import check_agent
from passgate.tasks.agents.llm_judge import judge_model, make_llm_judge
from passgate.tasks.errors import InputError, MeasurementError, Problem, UsageError
from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.formats.loading import grader_problem
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.names import RunnerName
from passgate.tasks.model.policy import VETOES, GatePolicy, Policy, Rule
from passgate.tasks.model.price import price_remedy
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import EvalTask
from passgate.tasks.providers.registry import PROVIDERS
from passgate.tasks.sandboxes.isolation import best_isolation, refuse_unisolated

if TYPE_CHECKING:
    from passgate.tasks.graders.vacuous import Vacuous

BLOCKING: Final = VETOES | {Rule.GOLDEN_REGRESSION, Rule.TASK_FAILED, Rule.SUITE_REGRESSION, Rule.THRESHOLD}
"""The rules by which a task that fails makes its gate fail."""
_UNAUTHORIZED: Final = 401


def refuse_other_options(run: str, given: Mapping[str, Any]) -> None:
    """Raise `UsageError` that lists every option beside `--resume` that differs from the run's own. `given` maps fields
    of a request to the values on the command line.
    """
    original = RunStore.of(run).read_plan().request
    others = []
    for name, value in given.items():
        before = getattr(original, name)
        if value != before:
            others.append(f"--{name} {value}: the run has {f'no --{name}' if before is None else f'--{name} {before}'}")
    if others:
        remedy = "leave out the options that differ, or start a new run"
        raise UsageError(f"--resume continues {run} with the options it started with; {'; '.join(others)}; {remedy}")


def refuse_unrunnable(plan: Plan, checkout: Checkout) -> None:
    """Raise `UsageError` for whatever would prevent every trial from running or from being recorded."""
    # Commands for authors run nothing, and start without the history.
    from passgate.tasks.integrity.tracked_folders import open_history

    for suites in dict.fromkeys((Path(plan.suites_folder), *(plan.suites_folder_for(suite) for suite in plan.brought))):
        check_agent(plan.agent, suites)
        make_llm_judge(plan.policy.judge, suites)
    if plan.agent.calls_models:
        from passgate.tasks.providers.endpoints import resolve_endpoints

        resolve_endpoints(plan.agent.upstreams, os.environ)
        # Trials on other machines check it there.
        if plan.policy.isolation == "required" and plan.request.runner_address is None:
            with temporary_folder("isolation") as folder:
                refuse_unisolated(best_isolation((), run_folder=folder))
    _refuse_unknown_price(plan)
    open_history(plan.history_location, checkout)
    recorded = plan.agent.model_dump_json()
    if run_masker(plan).json(recorded) != recorded:
        raise UsageError(
            "the agent, its command or its settings, contains the value of a secret, and passgate records agents: "
            "have the agent read it from an environment variable, which it inherits from passgate, or name a variable "
            "that holds no secret under `not_secrets` in gates.yaml"
        )


def _refuse_unknown_price(plan: Plan) -> None:
    """Raise `UsageError` for an unknown price of a model that is known before the first call."""
    tasks_with_budget = sum(task.budgets.max_cost_usd is not None for task in plan.tasks)
    why = plan.needs_price or (f"{tasks_with_budget} tasks have a cost budget" if tasks_with_budget else None)
    models = {plan.agent.fixed_model} if plan.agent.calls_models else set()
    if plan.request.max_cost is not None:
        models.add(judge_model(plan.policy.judge))
    for model in models:
        if why is not None and model and plan.prices.price(model) is None:
            raise UsageError(f"the price of the model {model!r} is unknown and {why}: {price_remedy(model)}")


def refuse_unreachable(agent: AgentSpec) -> None:
    """Raise an error for an endpoint that would make every trial an error. Check the endpoints that certainly are the
    agent's: its `upstreams`, that of an `openai` agent, the service of an `http` agent. Raise `UsageError` for a
    missing or refused key, which only the user can fix, and `MeasurementError` for an unavailable provider.
    """
    # Imported late: most runs of the reference call no model.
    from passgate.tasks.providers.endpoints import resolve_endpoint

    for name, endpoint in agent.own_endpoints:
        provider = PROVIDERS[name]
        target = resolve_endpoint(provider, endpoint, os.environ)
        if not target.key and endpoint.api_key_variable is not None:
            raise UsageError(f"{target.key_variable} is not set, and the agent {agent} reads its key from it: set it")
        if not target.key and target.base_url == provider.url:
            raise UsageError(
                f"{target.key_variable} is not set, and {target.base_url} accepts no call without a key: set it, or "
                "name another endpoint with `upstreams` in agents.yaml"
            )
        url = f"{target.base_url}/{provider.models}"
        remedy = f"check the base URL of {name} ({provider.base_url_variables[0]} or `upstreams`) and the network"
        if _status(url, target.key_headers, target.base_url, remedy) == _UNAUTHORIZED:
            state = "is not valid there" if target.key else "is not set"
            raise UsageError(f"{url} answers 401 and {target.key_variable} {state}: set it to a valid key")
    if agent.kind is AgentKind.HTTP:
        _status(agent.target, {}, agent.target, "start the service, or correct the agent's URL")


def _status(url: str, headers: Mapping[str, str], address: str, remedy: str) -> int | None:
    """Return the status of the answer to a GET. Raise `MeasurementError` if there is no connection."""
    from passgate.tasks.providers.probe import NoConnectionError, reach

    try:
        return reach(url, headers)
    except NoConnectionError as error:
        raise MeasurementError(f"{address} cannot be reached ({error}), so no trial ran: {remedy}") from error


def refuse_graders_that_cannot_fail(tasks: Sequence[EvalTask], policy: GatePolicy) -> None:
    """Raise `InputError` with every grader of these tasks that cannot fail, where a task that fails blocks the gate."""
    if problems := problems_of(tasks, policy):
        raise InputError(problems)


def problems_of(tasks: Sequence[EvalTask], policy: GatePolicy) -> list[Problem]:
    """Return a problem for every grader that cannot fail, with why and what to do; none where no failed task blocks."""
    # The graders take a while to import, and what only reads files needs none of them.
    from passgate.tasks.graders.vacuous import graders_that_cannot_fail

    blocks = not BLOCKING.isdisjoint(policy.blocks_on)
    return _problems(tasks, graders_that_cannot_fail, "cannot fail") if blocks else []


def weak_task_warnings(tasks: Sequence[EvalTask]) -> list[Problem]:
    """Return what an agent that does not do the work would pass: worth knowing, and no reason to refuse a task."""
    from passgate.tasks.graders.vacuous import graders_that_ask_too_little

    return _problems(tasks, graders_that_ask_too_little, "asks too little")


def problems_at_gates(tasks: Sequence[EvalTask], policy: Policy) -> list[Problem]:
    """Return the same for the tasks of every gate of a policy, each problem once."""
    found = (problems_of(policy.gate_tasks(gate, tasks), gate_policy) for gate, gate_policy in policy.gates.items())
    return list(dict.fromkeys(problem for problems in found for problem in problems))


def _problems(tasks: Sequence[EvalTask], find: Callable[[EvalTask], Iterable["Vacuous"]], what: str) -> list[Problem]:
    found = []
    for task in tasks:
        for one in find(task):
            subject = "this task" if one.place is None else f"the grader {task.graders[one.place].label!r}"
            found.append(grader_problem(task, one.place, f"{subject} {what}: {one.why}; {one.remedy}"))
    return found


def refuse_runner(request: RunRequest) -> None:
    """Raise `UsageError` for a task runner that this installation does not have, or that is not fully named."""
    runner = request.runner
    if runner is None:
        for option, value in (("--workers", request.workers), ("--runner-address", request.runner_address)):
            if value is not None:
                raise UsageError(f"{option} is for a task runner of Prefect: add --runner process, dask or ray")
    elif runner is RunnerName.PROCESS and request.runner_address is not None:
        raise UsageError("--runner process has no address: leave out --runner-address, or name --runner dask or ray")
    elif runner is not RunnerName.PROCESS and find_spec(f"prefect_{runner}") is None:
        raise UsageError(f"--runner {runner!s} is not installed: pip install 'passgate[{runner!s}]'")
