"""Plan: what a gate is asked and its files in, the plan of a run out."""

import fnmatch
import os
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from passgate.tasks.errors import UsageError
from passgate.tasks.formats.loading import (
    load_folder,
    load_pins,
    load_prices,
    load_quarantine,
    policy_of_run,
    refuse_what_cannot_run,
)
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.run import Plan, Revision, RunRequest
from passgate.tasks.model.task import EvalTask, GateName, Metric, Suite
from passgate.tasks.planning.agent_files import agent_digest
from passgate.tasks.planning.preflight import refuse_graders_that_cannot_fail


@dataclass(frozen=True)
class PlanFiles:
    """Where the files are that a plan is made of."""

    suites: Path
    gates: Path
    """Prices, quarantine and pins lie beside it."""
    working_folder: Path
    """What users see files named from."""
    environment: Mapping[str, str]
    """The variables that eval files may use."""

    @classmethod
    def of(cls, request: RunRequest) -> "PlanFiles":
        """Those that a request names."""
        return cls(Path(request.suites), Path(request.gates), Path.cwd(), os.environ)


def make_plan(
    gate: GateName,
    request: RunRequest,
    agent: AgentSpec,
    *,
    revision: Revision,
    version: str,
    files: PlanFiles | None = None,
) -> Plan:
    """Everything that a run of a gate needs, from the files that the request names, or from other ones.

    The digest of the agent is not among it. Raises `InputError` or `UsageError`; runs nothing.
    """
    files = files or PlanFiles.of(request)
    policy, is_shipped = policy_of_run(files.gates, Path(request.gates))
    if gate not in policy.gates:
        raise UsageError(f"{request.gates} has no gate {gate!s}; it has {', '.join(sorted(policy.gates))}")
    loaded = load_folder(files.suites, policy, files.working_folder, files.environment)
    of_gate = policy.tasks_of(gate, loaded.tasks)
    selected = [task for task in of_gate if _selected(task, request.task)]
    if request.task is not None and not selected:
        raise UsageError(f"no task of {gate!s} matches --task {request.task!r}")
    refuse_what_cannot_run(selected, loaded)
    refuse_graders_that_cannot_fail(selected, policy.gates[gate])
    created_at = datetime.now(UTC)
    return Plan(
        run_id=f"{created_at:%Y%m%dT%H%M%SZ}-{gate}-{secrets.token_hex(2)}",
        gate=gate,
        request=request,
        agent=agent,
        created_at=created_at,
        suites_folder=str(files.suites.absolute()),
        policy=policy,
        shipped_policy=is_shipped,
        prices=load_prices(files.gates),
        warnings=tuple(str(warning) for warning in loaded.warnings),
        tasks=tuple(_with_k(task, request.k, policy) for task in selected),
        outside=tuple(sorted(loaded.outside)),
        unselected=len(of_gate) - len(selected),
        revision=revision,
        quarantine=load_quarantine(files.gates, loaded.tasks),
        pins=load_pins(files.gates),
        passgate_version=version,
    )


def with_suites(plan: Plan, suites: Collection[Suite]) -> Plan:
    """The plan with the tasks of further suites: those in the suites folder that the request names, by the plan's own
    policy. Raises `InputError` or `UsageError` where there is none that can be run.
    """
    files = PlanFiles.of(plan.request)
    loaded = load_folder(files.suites, plan.policy, files.working_folder, files.environment)
    of_suites = [task for task in plan.policy.tasks_of(plan.gate, loaded.tasks) if task.suite in suites]
    taken = {task.task_id for task in plan.tasks}
    more = [task for task in of_suites if task.task_id not in taken]
    if not more:
        raise UsageError("each of their task_ids is already used by another task")
    refuse_what_cannot_run(more, loaded)
    refuse_graders_that_cannot_fail(more, plan.gate_policy)
    tasks = (*plan.tasks, *(_with_k(task, plan.request.k, plan.policy) for task in more))
    brought = tuple(dict.fromkeys(task.suite for task in more))
    return plan.model_copy(update={"tasks": tasks, "brought": brought})


def agent_digest_of(plan: Plan) -> str:
    """The digest of a plan's agent: of its spec, and of its files where the gate's policy names them. The files are
    those around the gates file that the request names. Raises `UsageError` for files that are not there.
    """
    reuse = plan.gate_policy.reuse
    return agent_digest(plan.agent, Path(plan.request.gates).parent, reuse.agent_files if reuse else ())


def _selected(task: EvalTask, pattern: str | None) -> bool:
    if pattern is None:
        return True
    return any(fnmatch.fnmatchcase(name, pattern) for name in (task.task_id, task.name))


def _with_k(task: EvalTask, k: int | None, policy: Policy) -> EvalTask:
    if k == 1 and task.metric is Metric.CONFIDENCE_INTERVAL:
        raise UsageError(f"--k 1 is too few for {task.task_id}: a confidence interval needs two trials")
    if k is None:
        return task
    sequential = policy.suites[task.suite].sequential_for(k, task.metric)
    return task.model_copy(update={"k": k, "sequential": sequential})
