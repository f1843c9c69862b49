"""Find a recorded trial of a run by the name of its task."""

from typing import NamedTuple

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import FinishedTrial, Trial, TrialStatus
from passgate.tasks.reports.figures import listed
from passgate.tasks.reports.trial import try_command, try_options

_NAMED = 12


class RecordedTrial(NamedTuple):
    """A trial of a run, with what a reader can do with it."""

    run_id: str
    finished: FinishedTrial
    kept: bool  # Whether the run keeps a transcript of it
    command: tuple[str, ...]
    """The words of the shell command that runs a trial of its task again; empty where nobody knows."""


def recorded_trial(run_id: str, task: str, number: int | None) -> RecordedTrial:
    """Return a trial by its number, else one that was tried in vain, else any. Raises `UsageError`, `StorageError`."""
    store = RunStore.of(run_id)
    if not store.has_plan():
        raise UsageError(f"the run {store.name} keeps no plan any more, so there are no trials to show")
    trials = [trial for trial in store.read_trials() if task in {_name(trial), trial.task_id}]
    names = sorted({_name(trial) for trial in trials})
    if len(names) > 1:
        raise UsageError(f"the run {store.name} has several tasks {task!r}: {', '.join(names)}")
    plan = store.read_plan()
    planned = {one.name: one for one in plan.tasks}
    if not trials:
        if any(task in {one.name, one.task_id} for one in plan.tasks):
            raise UsageError(f"the run {store.name} has no trial of {task!r} yet")
        close = nearest(task, [*planned, *(one.task_id for one in plan.tasks)])
        known = f"; known: {listed([*planned], _NAMED)}" if close.startswith("; known") else close
        raise UsageError(f"the run {store.name} has no task {task!r}{known}")
    trials.sort(key=lambda trial: trial.trial)
    if number is None:
        not_passed = (trial for trial in trials if trial.status in {TrialStatus.FAILED, TrialStatus.ERROR})
        chosen = next(not_passed, trials[0])
    elif (found := next((trial for trial in trials if trial.trial == number), None)) is not None:
        chosen = found
    else:
        numbers = [f"{trial.trial} ({trial.status.replace('_', ' ')})" for trial in trials]
        raise UsageError(f"{names[0]} has no trial {number} in this run: it has {listed(numbers, _NAMED)}")
    finished = next(store.finished_trials([chosen]), None)
    if finished is None:
        raise StorageError(f"the run {store.name} has changed while it was read: try again")
    command = try_command(names[0], plan.request.agent, try_options(plan.request)) if names[0] in planned else ()
    return RecordedTrial(store.name, finished, finished.transcript != Transcript(), command)


def _name(trial: Trial) -> str:
    return f"{trial.suite}/{trial.task_id}"
