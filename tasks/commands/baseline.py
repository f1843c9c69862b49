"""`passgate baseline`: the baseline of every task of the suites, and its pin in baseline.yaml."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from passgate import __version__
from passgate.tasks.errors import UsageError
from passgate.tasks.formats.loading import load_pins, load_tasks, policy_of_run
from passgate.tasks.formats.project_files import PINS_FILE, write_pins
from passgate.tasks.history.dataset import History
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.git import full_commit
from passgate.tasks.integrity.merge_base import pinned_base, request_base
from passgate.tasks.integrity.tracked_folders import open_history
from passgate.tasks.model.baseline import Baseline, Pins
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.planning.baseline import pooled_baseline, read_earlier_runs
from passgate.tasks.planning.find_run import run_name
from passgate.tasks.planning.named_agents import find_agent


def plan_of_every_task(request: RunRequest) -> Plan:
    """Return the plan, never run, of every task of the suites folder. Raises `InputError` or `UsageError`."""
    gates, suites = Path(request.gates), Path(request.suites)
    agent = find_agent(request.agent, gates, suites)
    policy, is_shipped = policy_of_run(gates)
    tasks, pins = load_tasks(suites, policy), load_pins(gates)
    with Checkout(Path.cwd()) as checkout:
        policy = policy.into(checkout.baseline_branch)
        base = pinned_base(request_base(checkout, request, policy), pins, Path.cwd())
    created_at = datetime.now(UTC)
    return Plan(
        run_id=f"{created_at:%Y%m%dT%H%M%SZ}~",  # sorts after every run that began in the same second
        gate=GateName.NIGHTLY,
        request=request,
        agent=agent,
        created_at=created_at,
        suites_folder=str(suites.absolute()),
        policy=policy,
        shipped_policy=is_shipped,
        tasks=tasks,
        base=base,
        pins=pins,
        passgate_version=__version__,
    )


def pool(plan: Plan) -> Baseline:
    """Return the baseline of the plan's tasks. Raises `UsageError` for an empty or tracked history, `StorageError`."""
    history = open_history(plan.history_location)
    earlier = read_earlier_runs(plan, history)
    if earlier.trials.empty and not history.run_ids():
        raise UsageError(f"the history {history.location} has no runs yet: `passgate run` makes the first")
    return pooled_baseline(plan, earlier)


def pinned_commit(folder: Path, name: str) -> str:
    """Return the full hash of a commit of the repository around a folder. Raise `UsageError` if there is none."""
    commit = full_commit(folder, name)
    if not commit and not full_commit(folder, "HEAD"):
        raise UsageError(f"there is no repository with a commit around {folder}: pin runs with --run instead")
    if not commit:
        raise UsageError(f"git knows no commit {name!r} here: fetch it, or name another with --commit")
    return commit


def pinned_runs(history: History, names: Sequence[str]) -> tuple[str, ...]:
    """Return runs with these names, beginnings or folders, the newest first. Raises `UsageError`, `StorageError`."""
    known = history.run_ids()[::-1]
    if not known:
        raise UsageError(f"the history {history.location} has no runs yet: `passgate run` makes the first")
    names = [*map(run_name, names)]
    # Every id begins with an empty name, which a script gives by mistake.
    unknown = [name for name in names if not name or not any(run.startswith(name) for run in known)]
    if unknown:
        named, newest = ", ".join(map(repr, unknown)), ", ".join(known[:3])
        raise UsageError(f"the history {history.location} has no run {named}; its newest are {newest}")
    return tuple(run for run in known if run.startswith(tuple(names)))


def pin(gates: Path, pins: Pins) -> Pins | None:
    """Write baseline.yaml beside the gates file. Return what it pinned before. Raises `InputError`, `UsageError`."""
    before = load_pins(gates)
    write_pins(gates.parent / PINS_FILE, pins)
    return before


def clear(gates: Path) -> Pins | None:
    """Remove baseline.yaml and return what was pinned, `None` if nothing was. Raises as `pin`."""
    before, file = load_pins(gates), gates.parent / PINS_FILE
    try:
        if before is not None:
            file.unlink()
    except OSError as error:
        raise UsageError(f"cannot remove {file}: {error.strerror or error}") from error
    return before
