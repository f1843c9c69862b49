"""Runs by their names."""

from pathlib import Path

from passgate.tasks.errors import UsageError
from passgate.tasks.history.run_store import LAST
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.integrity.earlier_runs import refuse_tracked
from passgate.tasks.integrity.git import Checkout


def refuse_tracked_runs(checkout: Checkout) -> None:
    """Refuse runs that a change brings with it: raises `UsageError` where git tracks the folder they are kept in."""
    refuse_tracked(f"passgate's folder {STATE_FOLDER}", STATE_FOLDER, checkout)


def find_run(name: str) -> str:
    """The id of a run by its id, the beginning of it, or `last`. Raises `UsageError`, also for runs that git tracks."""
    if not name:
        raise UsageError(f"the name of the run is empty: use its id, the start of its id, or `{LAST}`")
    refuse_tracked_runs(Checkout(Path.cwd()))
    folder = STATE_FOLDER / "runs"
    known = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    matching = known[-1:] if name == LAST else [run_id for run_id in known if run_id.startswith(name)]
    if len(matching) == 1 or name in matching:
        return name if name in matching else matching[0]
    if not matching:
        raise UsageError(f"no run {name!r} in {folder}" + (f"; the newest is {known[-1]}" if known else ""))
    raise UsageError(f"{name!r} matches {len(matching)} runs: {', '.join(matching[:5])}")
