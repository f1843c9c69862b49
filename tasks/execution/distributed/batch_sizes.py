"""How the trials of a round are divided into distributed batches, and how many of these each worker runs at once."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from passgate.tasks.execution.coordinator import Round
from passgate.tasks.execution.scheduler import TrialKey
from passgate.tasks.model.run import Batch

FEWEST: Final = 30
MOST: Final = 300
MOST_BATCHES: Final = 120
"""Of a round. A flow run has at most 200 task runs; the rest are for batches that are divided or run again."""
_FOR_EACH_WORKER: Final = 4  # With several batches for each worker, all of them end at about the same time


def sized(current: Round, workers: int) -> list[Batch]:
    """The trials of a round, in batches of 30 to 300: fewer trials only where workers would have nothing to do, more
    only where there would be too many batches. Each eval task is in one of them.

    Trials that the order of the round leaves out have finished before.
    """
    places = {key: place for place, key in enumerate(current.order)}
    wanted = [key for batch in current.batches for key in batch.trials if not places or key in places]
    step = current.batches[0].step if current.batches else "run"
    whole = len(wanted)
    size = min(max(FEWEST, -(-whole // (workers * _FOR_EACH_WORKER))), MOST, -(-whole // workers))
    return _batches(wanted, _even(wanted, max(size, -(-whole // MOST_BATCHES)), workers), step, places)


def _even(keys: Sequence[TrialKey], size: int, workers: int) -> int:
    """A size with which each worker has the same number of batches, not above `size`: else some workers have nothing to
    do while others run the last batches. `size` itself where such batches would be too small or too many.
    """
    batches = -(-len(keys) // max(size * workers, 1)) * workers
    even = -(-len(keys) // max(batches, 1))
    if even < FEWEST or batches > MOST_BATCHES:
        return size
    largest_task = max(Counter(task_id for task_id, _ in keys).values())
    return min(size, even + largest_task - 1)  # An eval task stays whole, so batches are up to that much smaller


def divided(batch: Batch, trials: Sequence[TrialKey], workers: int) -> list[Batch]:
    """Trials of a batch in new batches, about one for each worker. Eval tasks are divided only if there is just one."""
    tasks = {task_id for task_id, _ in trials}
    if len(tasks) > 1:
        made = _batches(trials, -(-len(trials) // workers), batch.step, {})
    else:
        size = -(-len(trials) // workers)
        made = [
            batch.model_copy(update={"trials": tuple(trials[start : start + size])})
            for start in range(0, len(trials), size)
        ]
    return [one.model_copy(update={"continued": True}) for one in made]


def joined(batches: Sequence[Batch], workers: int) -> list[Batch]:
    """The trials of batches in no more batches than there are workers."""
    trials = [key for batch in batches for key in batch.trials]
    made = _batches(trials, -(-len(trials) // workers), batches[0].step, {})
    return [one.model_copy(update={"continued": True}) for one in made]


def slots(trials_at_once: int, workers: int) -> list[int]:
    """The number of trials that each worker runs at once, the largest first. Their sum is at most `trials_at_once`."""
    used = min(workers, trials_at_once)
    return [trials_at_once // used + (place < trials_at_once % used) for place in range(used)]


def _batches(keys: Iterable[TrialKey], size: int, step: str, places: dict[TrialKey, int]) -> list[Batch]:
    of_tasks: dict[str, list[TrialKey]] = {}
    for key in keys:
        of_tasks.setdefault(key[0], []).append(key)
    groups: list[list[TrialKey]] = []
    for some in of_tasks.values():
        if not groups or len(groups[-1]) + len(some) > max(size, 1):
            groups.append([])
        groups[-1].extend(some)
    for group in groups:
        group.sort(key=lambda key: places.get(key, -1))
    groups.sort(key=lambda group: places.get(group[0], -1))
    return [Batch.model_validate({"name": _name_of(group, step), "step": step, "trials": group}) for group in groups]


def _name_of(trials: Sequence[TrialKey], step: str) -> str:
    tasks = list(dict.fromkeys(task_id for task_id, _ in trials))
    others = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
    return f"{'confirm ' if step == 'confirm' else ''}{tasks[0]}{others}"
