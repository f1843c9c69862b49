"""Make the plan of a run from a request and the files that it names; keep the files that its trials need with it."""

import hashlib
import os
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Final

from passgate import __version__
from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.formats import loading
from passgate.tasks.formats.digests import judging_outside, rule_files
from passgate.tasks.formats.project_files import ENV_FILE
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.run import Plan, Revision, RunRequest, Snapshot
from passgate.tasks.model.task import EvalTask, GateName, Metric, Suite
from passgate.tasks.planning.named_agents import find_agent
from passgate.tasks.planning.requirements import refuse_graders_that_cannot_fail

FILES: Final = "files"  # Where in the run's folder of this machine the files of its snapshot are
# Variables of this machine, runs, and what Python writes by itself. Tasks have the values of variables by now.
_NEVER_SENT: Final = frozenset({ENV_FILE, STATE_FOLDER.name, "__pycache__"})


@dataclass(frozen=True)
class PlanFiles:
    """The files that a plan is loaded from."""

    suites: Path
    gates: Path  # Prices, quarantine and pins are in the same folder
    working_folder: Path  # Messages show paths relative to it
    environment: Mapping[str, str]  # The variables that eval files may use

    @classmethod
    def of(cls, request: RunRequest) -> "PlanFiles":
        """Return the files that a request names."""
        return cls(Path(request.suites), Path(request.gates), Path.cwd(), os.environ)


def make_plan(
    gate: GateName,
    request: RunRequest,
    agent: AgentSpec,
    *,
    revision: Revision,
    files: PlanFiles | None = None,
    run_id: str = "",
) -> Plan:
    """Load everything that a run of a gate needs, from the files of the request or from `files`. Run nothing. Without
    `run_id`, make a new one. The plan still lacks the agent's digest. Raise `InputError` or `UsageError`.
    """
    files = files or PlanFiles.of(request)
    policy, is_shipped = loading.policy_of_run(files.gates, Path(request.gates))
    if gate not in policy.gates:
        raise UsageError(f"{request.gates} has no gate {gate!s}; it has {', '.join(sorted(policy.gates))}")
    loaded = loading.load_folder(files.suites, policy, files.working_folder, files.environment)
    of_gate = policy.gate_tasks(gate, loaded.tasks)
    pattern = "*" if request.task is None else request.task
    selected = [one for one in of_gate if any(fnmatchcase(name, pattern) for name in (one.task_id, one.name))]
    if request.task is not None and not selected:
        raise UsageError(f"no task of {gate!s} matches --task {request.task!r}")
    loading.refuse_what_cannot_run(selected, loaded)
    refuse_graders_that_cannot_fail(selected, policy.gates[gate])
    created_at = start_time(run_id) if run_id else datetime.now(UTC)
    return Plan(
        run_id=run_id or new_run_id(gate, created_at, secrets.token_hex(2)),
        gate=gate,
        request=request,
        agent=agent,
        created_at=created_at,
        suites_folder=str(files.suites.absolute()),
        policy=policy,
        shipped_policy=is_shipped,
        prices=loading.load_prices(files.gates),
        warnings=tuple(str(warning) for warning in loaded.warnings),
        tasks=tuple(_set_k(task, request.k) for task in selected),
        outside=tuple(sorted(loaded.outside)),
        unselected=len(of_gate) - len(selected),
        revision=revision,
        quarantine=loading.load_quarantine(files.gates, loaded.tasks),
        pins=loading.load_pins(files.gates),
        passgate_version=__version__,
    )


def new_run_id(gate: GateName, start: datetime, token: str) -> str:
    """Return the id of a run. Ids sort by the start times of their runs, in UTC."""
    return f"{start.astimezone(UTC):%Y%m%dT%H%M%SZ}-{gate}-{token}"


def start_time(run_id: str) -> datetime:
    """Return when a run started. The history stores it under that day, even if a later attempt planned it."""
    return datetime.strptime(run_id.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def add_suites(plan: Plan, suites: Collection[Suite]) -> Plan:
    """Return the plan with the tasks of further suites from the request's suites folder, under the plan's policy. Raise
    `InputError` or `UsageError` if none of them can run.
    """
    files = PlanFiles.of(plan.request)
    loaded = loading.load_folder(files.suites, plan.policy, files.working_folder, files.environment)
    of_suites = [task for task in plan.policy.gate_tasks(plan.gate, loaded.tasks) if task.suite in suites]
    taken = {task.task_id for task in plan.tasks}
    more = [task for task in of_suites if task.task_id not in taken]
    if not more:
        raise UsageError("each of their task_ids is already used by another task")
    loading.refuse_what_cannot_run(more, loaded)
    refuse_graders_that_cannot_fail(more, plan.gate_policy)
    tasks = (*plan.tasks, *(_set_k(task, plan.request.k) for task in more))
    brought = tuple(dict.fromkeys(task.suite for task in more))
    return plan.model_copy(update={"tasks": tasks, "brought": brought})


def plan_agent_digest(plan: Plan) -> str:
    """Return the digest of a plan's agent: of its spec, and of its files if the gate's policy names them, relative to
    the gates file. Raise `UsageError` for missing files.
    """
    reuse = plan.gate_policy.reuse
    return agent_digest(plan.agent, Path(plan.request.gates).parent, reuse.agent_files if reuse else ())


def _set_k(task: EvalTask, k: int | None) -> EvalTask:
    if k == 1 and task.metric is Metric.CONFIDENCE_INTERVAL:
        raise UsageError(f"--k 1 is too few for {task.task_id}: a confidence interval needs two trials")
    return task if k is None else task.model_copy(update={"k": k})


# Folders that change although the agent does not, as passgate's own with every run.
_NEVER_THE_AGENT = frozenset({".git", "__pycache__", STATE_FOLDER.name})
_REMEDY = "see `reuse.agent_files` in the gates file"


def agent_digest(spec: AgentSpec, folder: Path, patterns: Sequence[str]) -> str:
    """Return the SHA-256 of an agent's spec and of the files of a folder that match the patterns, as in `src/**/*.py`,
    with whether they are executable.

    Raise `UsageError` for a pattern that matches nothing or leads out of the folder, and for an unreadable file.
    """
    files: dict[str, list[str | bool]] = {}
    for file in {file for pattern in patterns for file in _files(folder, pattern)}:
        try:
            with file.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
                files[file.relative_to(folder).as_posix()] = [content, file.stat().st_mode & 0o111 != 0]
        except OSError as error:
            message = f"{file} is an agent's file and cannot be read: {error.strerror}; {_REMEDY}"
            raise UsageError(message) from error
    return json_digest([spec.model_dump(mode="json", exclude_defaults=True), files])


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    path = PurePath(pattern)
    if path.is_absolute() or ".." in path.parts:
        raise UsageError(f"the pattern {pattern!r} leads out of {folder}: {_REMEDY}")
    root, is_empty = folder.resolve(), True
    try:
        for file in folder.glob(pattern):
            if not _NEVER_THE_AGENT.isdisjoint(file.relative_to(folder).parts) or not file.is_file():
                continue
            # If passgate skipped it, a change of it would go unnoticed.
            if not file.resolve().is_relative_to(root):
                raise UsageError(f"{file} is a link that leaves {folder}, and {pattern!r} matches it: {_REMEDY}")
            is_empty = False
            yield file
    except (ValueError, IndexError, OSError) as error:  # an IndexError is what pathlib has for "."
        raise UsageError(f"the files of the pattern {pattern!r} cannot be found: {error}; {_REMEDY}") from error
    if is_empty:
        raise UsageError(f"no file of {folder} matches the pattern {pattern!r}: {_REMEDY}")


def new_plan(gate: GateName, request: RunRequest, checkout: Checkout, run_id: str = "") -> Plan:
    """Load the plan of a new run from the working tree. Write nothing. Raise `InputError` or `UsageError`."""
    agent = find_agent(request.agent, Path(request.gates), Path(request.suites))
    plan = make_plan(gate, request, agent, revision=checkout.revision, run_id=run_id)
    policy = plan.policy.into(checkout.baseline_branch)
    return plan.model_copy(update={"agent_digest": plan_agent_digest(plan), "policy": policy})


def store_snapshot(plan: Plan, store: RunStore) -> Plan:
    """Keep the files of a plan in its store; return the plan with their digest. Raises `UsageError`, `StorageError`."""
    from passgate.tasks.files.archive import pack  # Few runs are kept at a URL

    suites, brought = Path(plan.suites_folder).absolute(), Path(plan.request.suites).absolute()
    folders = [suites, *_outside(plan, suites), *([brought] if plan.brought else [])]
    root = Path(os.path.commonpath(folders)) if len(folders) > 1 else suites.parent
    _refuse_secrets(plan, folders)
    content = pack(root, folders, _NEVER_SENT)
    digest = hashlib.sha256(content).hexdigest()
    store.write_file(_archive_name(digest), content)
    snapshot = Snapshot(
        digest=digest,
        suites=suites.relative_to(root).as_posix(),
        brought=brought.relative_to(root).as_posix() if plan.brought else "",
    )
    return plan.model_copy(update={"snapshot": snapshot})


def plan_with_files(store: RunStore) -> Plan:
    """Return the plan of a resumed run, with the files of its snapshot in the run's folder of this machine. Raises
    `StorageError`, and `UsageError` for a run that is not kept under its own id.
    """
    plan = store.read_plan()
    if plan.snapshot is None:
        return plan
    if not f"{store.location}/".endswith(f"/{plan.run_id}/"):
        raise UsageError(f"{store.location} holds the run {plan.run_id}: keep a run under its own id")
    return unpack_snapshot(plan, store.read_file, store.make(FILES))


def unpack_snapshot(plan: Plan, read: Callable[[str], bytes | None], folder: Path) -> Plan:
    """Unpack the files of a plan into an empty folder; return the plan that goes by them. `read` reads files of the
    run. Raises `StorageError`, also where the files are not those of the plan.
    """
    if plan.snapshot is None:
        return plan
    from passgate.tasks.files.archive import unpack

    name = _archive_name(plan.snapshot.digest)
    content = read(name)
    if content is None or hashlib.sha256(content).hexdigest() != plan.snapshot.digest:
        what = "is not there" if content is None else "is not the one that the run began with"
        raise StorageError(f"{name} of the run {plan.run_id} {what}: nothing was run")
    unpack(content, folder)
    moved: dict[str, object] = {"suites_folder": str(folder / plan.snapshot.suites)}
    if plan.snapshot.brought:
        moved["request"] = plan.request.model_copy(update={"suites": str(folder / plan.snapshot.brought)})
    return plan.model_copy(update=moved)


def _archive_name(digest: str) -> str:
    return f"snapshot/{digest}.tar.gz"


def _outside(plan: Plan, suites: Path) -> Iterator[Path]:
    """Yield the files and folders that the tasks use outside of the suites folder."""
    spaces = [task.workspace for task in plan.tasks if task.workspace is not None]
    templates = [space.template for space in spaces if space.template]
    rules = [name for space in spaces for name in rule_files(space)]
    repositories = [repository.repo for space in spaces for repository in space.repos]
    recorded = [plan.policy.judge.recorded] if plan.policy.judge.recorded else []
    for name in {*judging_outside(plan.tasks, suites), *templates, *rules, *repositories, *recorded}:
        place = Path(os.path.normpath(suites / name))
        if os.path.lexists(place) and not place.is_relative_to(suites):
            if suites.is_relative_to(place):
                raise UsageError(f"a task names {name}, which holds the whole suites folder: name a folder beside it")
            yield place


def _refuse_secrets(plan: Plan, folders: list[Path]) -> None:
    """Files cannot be masked: a task with another file is another task."""
    masker = run_masker(plan)
    for folder in folders:
        for file in [folder] if folder.is_file() else folder.rglob("*"):
            if file.name not in _NEVER_SENT and file.is_file() and masker.finds_in(file.read_bytes()):
                raise UsageError(
                    f"{file} contains the value of a secret, and the run store would hold it: take it out, or name its "
                    "variable under `not_secrets` in gates.yaml"
                )
