"""The trials of a round in batches: eval tasks in, batches out."""

from collections.abc import Iterable, Sequence
from typing import Final

from passgate.tasks.model.run import Batch
from passgate.tasks.model.task import EvalTask

MOST_BATCHES: Final = 32  # Prefect task runs cost time on its server, so tasks share them once there are many


def batches_of(tasks: Sequence[EvalTask]) -> tuple[Batch, ...]:
    """Divide the planned trials of tasks into at most about thirty batches of one suite each; the order stays as far as
    it can.
    """
    size = max(1, -(-len(tasks) // MOST_BATCHES))
    by_suite: dict[str, list[EvalTask]] = {}
    for task in tasks:
        by_suite.setdefault(task.suite, []).append(task)
    return tuple(
        Batch(name=_name_of(some), trials=tuple((task.task_id, number) for task in some for number in range(task.k)))
        for of_suite in by_suite.values()
        for some in (of_suite[start : start + size] for start in range(0, len(of_suite), size))
    )


def confirming_batches(wanted: Iterable[tuple[EvalTask, Sequence[int]]]) -> tuple[Batch, ...]:
    """Put confirming trials, by their numbers, into a batch for each task."""
    return tuple(
        Batch(name=f"confirm {task.name}", step="confirm", trials=tuple((task.task_id, number) for number in numbers))
        for task, numbers in wanted
    )


def _name_of(tasks: Sequence[EvalTask]) -> str:
    others = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
    return f"{tasks[0].name}{others}"
