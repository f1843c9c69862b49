"""The snapshot of a run: the files that its trials need, for machines that have none of them, by their digest."""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.files.archive import pack, unpack
from passgate.tasks.formats.digests import judging_outside, rule_files
from passgate.tasks.formats.project_files import ENV_FILE
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.model.run import Plan, Snapshot

FILES: Final = "files"  # Where in the run's folder of this machine the files of its snapshot are
_NEVER_SENT: Final = frozenset({ENV_FILE, STATE_FOLDER.name, "__pycache__"})
"""Variables of this machine, runs, and what Python writes by itself. Tasks have the values of variables by now."""


def with_snapshot(plan: Plan, store: RunStore) -> Plan:
    """Keep the files of a plan in its store; gives the plan with their digest. Raises `UsageError`, `StorageError`."""
    suites, brought = Path(plan.suites_folder).absolute(), Path(plan.request.suites).absolute()
    folders = [suites, *_outside(plan, suites), *([brought] if plan.brought else [])]
    root = Path(os.path.commonpath(folders)) if len(folders) > 1 else suites.parent
    _refuse_secrets(plan, folders)
    content = pack(root, folders, _NEVER_SENT)
    digest = hashlib.sha256(content).hexdigest()
    store.write_file(_name(digest), content)
    snapshot = Snapshot(
        digest=digest,
        suites=suites.relative_to(root).as_posix(),
        brought=brought.relative_to(root).as_posix() if plan.brought else "",
    )
    return plan.model_copy(update={"snapshot": snapshot})


def plan_with_files(store: RunStore) -> Plan:
    """Return the plan of a resumed run, with the files of its snapshot in the run's folder of this machine.

    Raises `StorageError`, and `UsageError` for a run that is not kept under its own id.
    """
    plan = store.read_plan()
    if plan.snapshot is None:
        return plan
    if not f"{store.location}/".endswith(f"/{plan.run_id}/"):
        raise UsageError(f"{store.location} holds the run {plan.run_id}: keep a run under its own id")
    return with_files_in(plan, store.read_file, store.make(FILES))


def with_files_in(plan: Plan, read: Callable[[str], bytes | None], folder: Path) -> Plan:
    """Unpack the files of a plan into an empty folder; return the plan that goes by them.

    `read` reads files of the run. Raises `StorageError`, also where the files are not those of the plan.
    """
    if plan.snapshot is None:
        return plan
    name = _name(plan.snapshot.digest)
    content = read(name)
    if content is None or hashlib.sha256(content).hexdigest() != plan.snapshot.digest:
        what = "is not there" if content is None else "is not the one that the run began with"
        raise StorageError(f"{name} of the run {plan.run_id} {what}: nothing was run")
    unpack(content, folder)
    moved: dict[str, object] = {"suites_folder": str(folder / plan.snapshot.suites)}
    if plan.snapshot.brought:
        moved["request"] = plan.request.model_copy(update={"suites": str(folder / plan.snapshot.brought)})
    return plan.model_copy(update=moved)


def _name(digest: str) -> str:
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
