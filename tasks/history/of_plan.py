"""The history of a plan: where it is, whether it can take the run, and whose secrets are masked in it."""

from passgate.tasks.history.dataset import History
from passgate.tasks.history.masking import Masker
from passgate.tasks.model.run import Plan


def history_location(plan: Plan) -> str:
    """The folder or URL of the history that a run belongs to."""
    return plan.request.history or plan.policy.history


def refuse_unwritable(plan: Plan) -> None:
    """Find out, before the first trial, whether the history can take the run. Raises `UsageError`."""
    suites = dict.fromkeys(str(task.suite) for task in plan.tasks)
    History(history_location(plan)).refuse_unwritable(day_of(plan), suites)


def day_of(plan: Plan) -> str:
    return f"{plan.created_at:%Y-%m-%d}"


def masker_of(plan: Plan) -> Masker:
    """The masker of the secrets that the run's policy declares."""
    return Masker.of_environment(plan.policy.secrets)
