"""Find runs by their names."""

import json
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from passgate.tasks.errors import UsageError
from passgate.tasks.history.run_store import LAST
from passgate.tasks.history.storage import PLAN, STATE_FOLDER, storage_at
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.tracked_folders import refuse_tracked
from passgate.tasks.reports.figures import listed

_RUNS: Final = STATE_FOLDER / "runs"
_MOST_NAMED: Final = 5


def refuse_tracked_runs(checkout: Checkout | None = None) -> None:
    """Raise `UsageError` if git tracks the folder of the runs: a change could contain forged ones."""
    refuse_tracked(f"passgate's folder {STATE_FOLDER}", STATE_FOLDER, checkout)


def find_run(name: str) -> str:
    """Return the id of a run of this working folder, given its id, the start of its id, `last` or its folder's path.

    For a URL, whose last part may be an id, the start of one or `last`, return the URL of the run. Raise `UsageError`,
    also for runs that git tracks, and `StorageError`.
    """
    if not name:
        raise UsageError(f"the name of the run is empty: use its id, the start of its id, or `{LAST}`")
    refuse_tracked_runs()
    if "://" in name:
        runs, _, name = name.rstrip("/").rpartition("/")
        return f"{runs}/{_matching(name, storage_at(runs).folders(), runs)}"
    return _matching(run_name(name), _run_ids(), str(_RUNS))


def _matching(name: str, known: list[str], runs: str) -> str:
    if name == LAST:
        matching = list(islice((run_id for run_id in reversed(known) if not _is_copy(runs, run_id)), 1))
    else:
        matching = [run_id for run_id in known if run_id.startswith(name)]
    if len(matching) == 1 or name in matching:
        return name if name in matching else matching[0]
    if not matching:
        raise UsageError(f"no run {name!r} in {runs}{_newest(known)}")
    raise UsageError(f"{name!r} matches {len(matching)} runs: {listed(matching[::-1], _MOST_NAMED)}")


def _is_copy(runs: str, name: str) -> bool:
    """Return whether a folder contains a run of another name, such as a backup. Raise `StorageError`."""
    try:
        return bool(json.loads(storage_at(runs).read(f"{name}/{PLAN}") or b"")["run_id"] != name)
    except (ValueError, KeyError, TypeError):
        return False


def run_name(name: str) -> str:
    """Return the id of a run for the path of its folder, as a shell completes it, and any other name unchanged. Raise
    `UsageError` for any other path.
    """
    # Ids have no slash.
    if "/" not in name:
        return name
    # Resolve only the parent: the folder's own name is the id, even if it is a link.
    path = Path(name)
    known = _run_ids()
    if path.name in known and path.parent.resolve() == _RUNS.resolve():
        return path.name
    remedy = f"use the run's id, the start of its id, or `{LAST}`{_newest(known)}"
    with suppress(OSError):
        remedy = "move it there" if (path / PLAN).is_file() else remedy
    raise UsageError(f"{name!r} is not the folder of a run in {_RUNS}: {remedy}")


def _run_ids() -> list[str]:
    return sorted(entry.name for entry in _RUNS.iterdir() if entry.is_dir()) if _RUNS.is_dir() else []


def _newest(known: list[str]) -> str:
    return f"; the newest is {known[-1]}" if known else ""
