"""The history of a run: whether it can take the run, and whose secrets are masked in it."""

from passgate.tasks.history.dataset import History
from passgate.tasks.history.masking import Masker
from passgate.tasks.model.run import RunContext


def refuse_unwritable(context: RunContext) -> None:
    """Find out, before the first trial, whether the history can take the run. Raises `UsageError`."""
    suites = dict.fromkeys(str(task.suite) for task in context.tasks)
    History(context.history_location).refuse_unwritable(context.day, suites)


def masker_of(context: RunContext) -> Masker:
    """The masker of the secrets that the run's policy declares."""
    return Masker.of_environment(context.policy.secrets)
