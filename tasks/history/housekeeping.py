"""What keeps a history small: joining the summaries of past months, and removing runs."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from passgate.tasks.errors import StorageError
from passgate.tasks.history.activity import STORING, TIDYING, marked, refuse_others
from passgate.tasks.history.dataset import COMPACTED, PRUNING, Days, History, run_of, summary_number
from passgate.tasks.history.parquet_files import SUMMARIES, TRANSCRIPTS, TRIALS, StoredFile, read_files

_ORDER: Final = [(name, "ascending") for name in ("run_id", "suite", "task_id")]


class Compacted(NamedTuple):
    """What compacting a history has done."""

    joined: int = 0
    """Files of summaries that stand in a joined one now."""
    made: int = 0
    """Runs that had no summary."""


def compact(history: History, before: str) -> Compacted:
    """Join the summaries of each month before one, as in `2026-01`, into a file, and make those that are missing.

    A file is removed once what it says stands in the joined one; what another process stores meanwhile stays, because
    it has a name of its own. Raises `StorageError`, also while somebody else compacts or prunes.
    """
    with _tidying(history, (TIDYING,)):
        _end_pruning(history)
        own = [file for file in history.every_file("summaries", SUMMARIES) if file.place["stem"] != COMPACTED]
        stored = [file.place["day"] for file in history.listed("trials", TRIALS).files]
        months = sorted({day[:7] for day in (*(file.place["period"] for file in own), *stored)})
        done = [
            _compact_month(history, month, [file for file in own if file.place["period"][:7] == month])
            for month in months
            if month < before
        ]
        return Compacted(sum(one.joined for one in done), sum(one.made for one in done))


def prune(history: History, runs: Collection[str]) -> None:
    """Remove runs: their trials, transcripts and summaries.

    Readers leave a run out from the moment at which its removal begins. A removal that was cut short is ended by the
    next `prune` or `compact`. Raises `StorageError`, also while somebody stores a run, compacts or prunes.
    """
    with _tidying(history, (TIDYING, STORING)) as own:
        fresh = sorted(set(runs) - history.pruned)
        for run_id in fresh:
            history.files.write(f"{PRUNING}/{run_id}", b"")
        try:
            # Whoever began to store one of these runs before it stood there would leave half of it.
            refuse_others(history.files, own, (STORING,))
        except StorageError:
            for run_id in fresh:
                history.files.remove(f"{PRUNING}/{run_id}")
            raise
        _end_pruning(history)


@contextmanager
def _tidying(history: History, unlike: tuple[str, ...]) -> Iterator[str]:
    """Keep others away who do something of these kinds."""
    try:
        with marked(history.files, TIDYING) as own:
            refuse_others(history.files, own, unlike)
            yield own
    except OSError as error:
        raise StorageError(f"cannot write the history {history.location}: {error}") from error


def _compact_month(history: History, month: str, own: Sequence[StoredFile]) -> Compacted:
    days = Days(f"{month}-01", f"{month}-31")
    summarised = {run_of(file.place["stem"]) for file in own} | _runs_of(history.summary_files(days)[1])
    table = history.summaries(SUMMARIES.schema().names, days)
    held = set(pc.unique(table["run_id"]).to_pylist())
    done = [file for file in own if run_of(file.place["stem"]) in held]
    if held:
        history.files.write_table(f"summaries/{month}/{COMPACTED}.parquet", table.sort_by(_ORDER))
    # An earlier summary of a run counts once the later one has gone.
    for file in sorted(done, key=lambda one: summary_number(one.place["stem"])):
        history.files.remove(f"summaries/{file.name}")
    return Compacted(len(done), len(held - summarised))


def _runs_of(files: Sequence[StoredFile]) -> set[str]:
    return set(pc.unique(read_files(files, SUMMARIES, ["run_id"]).table["run_id"]).to_pylist())


def _end_pruning(history: History) -> None:
    """Remove everything of the runs whose removal has begun."""
    runs = history.pruned
    if not runs:
        return
    places = (("trials", TRIALS), ("transcripts", TRANSCRIPTS), ("summaries", SUMMARIES))
    for name, stored in chain.from_iterable(
        ((name, file) for file in history.every_file(name, kind)) for name, kind in places
    ):
        if run_of(stored.place["stem"]) in runs:
            history.files.remove(f"{name}/{stored.name}")
        elif stored.place["stem"] == COMPACTED:
            _take_out(history, stored, runs)
    for run_id in sorted(runs):
        history.files.remove(f"{PRUNING}/{run_id}")


def _take_out(history: History, compacted: StoredFile, runs: Collection[str]) -> None:
    """Write a file of many runs again without some. One that cannot be read stays as it is: no reader reads it."""
    names = SUMMARIES.schema().names
    taken = ds.field("run_id").isin(pa.array(sorted(runs), pa.string()))
    if not len(read_files([compacted], SUMMARIES, ["run_id"], taken).table):
        return
    rest = read_files([compacted], SUMMARIES, names, ~taken).table
    if len(rest):
        history.files.write_table(f"summaries/{compacted.name}", rest)
    else:
        history.files.remove(f"summaries/{compacted.name}")
