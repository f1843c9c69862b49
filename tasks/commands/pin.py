"""`passgate baseline pin` and `clear`: what the user calls a commit or runs in, baseline.yaml out."""

from collections.abc import Sequence
from pathlib import Path

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.formats.loading import load_pins
from passgate.tasks.formats.project_files import PINS_FILE, write_pins
from passgate.tasks.history.dataset import History
from passgate.tasks.integrity.git import full_commit
from passgate.tasks.model.baseline import Pins


def pinned_commit(folder: Path, name: str) -> str:
    """The full hash of a commit of the repository that a folder lies in. Raises `UsageError` where there is none."""
    commit = full_commit(folder, name)
    if commit:
        return commit
    if not full_commit(folder, "HEAD"):
        raise UsageError(f"there is no repository with a commit around {folder}: pin runs with --run instead")
    raise UsageError(f"git knows no commit {name!r} here: fetch it, or name another with --commit")


def pinned_runs(history: History, names: Sequence[str]) -> tuple[str, ...]:
    """The ids of the runs of a history that have these names or begin with them, the newest first.

    Raises `UsageError` for names that no run has, `StorageError`.
    """
    known = sorted(history.trials(columns=["run_id"])["run_id"].unique(), reverse=True)
    if not known:
        raise UsageError(f"the history {history.location} has no runs yet: `passgate run` makes the first")
    unknown = [name for name in names if not name or not any(run.startswith(name) for run in known)]
    if unknown:
        newest = ", ".join(known[:3])
        raise UsageError(
            f"the history {history.location} has no run {', '.join(map(repr, unknown))}; its newest are {newest}"
        )
    return tuple(run for run in known if run.startswith(tuple(names)))


def pin(gates: Path, pins: Pins) -> Pins | None:
    """Write baseline.yaml beside the gates file; gives what was pinned there before.

    Raises `InputError` for a file there that cannot be read, `StorageError`.
    """
    before = load_pins(gates)
    write_pins(gates.parent / PINS_FILE, pins)
    return before


def clear(gates: Path) -> Pins | None:
    """Remove baseline.yaml; gives what was pinned, `None` where nothing was. Raises as `pin`."""
    before = load_pins(gates)
    if before is None:
        return None
    file = gates.parent / PINS_FILE
    try:
        file.unlink()
    except OSError as error:
        raise StorageError(f"cannot remove {file}: {error}") from error
    return before
