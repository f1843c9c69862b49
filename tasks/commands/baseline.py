"""`passgate baseline show`: the baseline of every task of the suites."""

from datetime import UTC, datetime
from pathlib import Path

from passgate.tasks.errors import UsageError
from passgate.tasks.formats.loading import load_pins, load_tasks, policy_of_run
from passgate.tasks.history.baseline import COLUMNS, baseline_of
from passgate.tasks.integrity.earlier_runs import read_earlier_runs
from passgate.tasks.integrity.merge_base import base_of, pinned_base
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName


def plan_of_every_task(request: RunRequest, agent: AgentSpec, *, folder: Path, version: str) -> Plan:
    """The plan of a run that is not to be run: every task of the suites folder, whatever its gates.

    `folder` lies in the repository. Raises `InputError` or `UsageError`.
    """
    gates = Path(request.gates)
    policy, is_shipped = policy_of_run(gates)
    tasks = load_tasks(Path(request.suites), policy)
    pins = load_pins(gates)
    created_at = datetime.now(UTC)
    return Plan(
        run_id=f"{created_at:%Y%m%dT%H%M%SZ}~",  # after every run that began in the same second
        gate=GateName.NIGHTLY,
        request=request,
        agent=agent,
        created_at=created_at,
        suites_folder=str(Path(request.suites).absolute()),
        policy=policy,
        shipped_policy=is_shipped,
        tasks=tasks,
        base=pinned_base(base_of(folder, request, policy), pins, folder),
        pins=pins,
        passgate_version=version,
    )


def pool(plan: Plan) -> Baseline:
    """What the history says of the plan's tasks. Raises `UsageError` for a history without runs, and for one
    that git tracks, `StorageError`.
    """
    location = plan.history_location
    earlier = read_earlier_runs(location, Path.cwd(), datetime.now(UTC), COLUMNS)
    if earlier.trials.empty:
        raise UsageError(f"the history {location} has no runs yet: `passgate run` makes the first")
    return baseline_of(plan, earlier.trials).model_copy(update={"left_out": earlier.left_out})
