"""Remove runs from a history."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import chain

from passgate.tasks.errors import StorageError
from passgate.tasks.history.activity import STORING, TIDYING, marked, refuse_others
from passgate.tasks.history.dataset import PRUNING, History, run_of
from passgate.tasks.history.parquet_files import SUMMARIES, TRANSCRIPTS, TRIALS


def prune(history: History, runs: Collection[str]) -> None:
    """Remove runs: their trials, transcripts and summaries.

    Readers leave a run out from the moment at which its removal begins. The next `prune` ends a removal that was cut
    short. Raise `StorageError`, also while somebody stores a run or prunes.
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
    for run_id in sorted(runs):
        history.files.remove(f"{PRUNING}/{run_id}")
