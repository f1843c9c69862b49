"""Record: finished trials in, the history grown by one run out."""

from collections.abc import Sequence

from passgate.tasks.history.columns import rows
from passgate.tasks.history.dataset import History
from passgate.tasks.history.masking import Masker
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import FinishedTrial


def history_location(plan: Plan) -> str:
    """The folder or URL of the history that a run belongs to."""
    return plan.request.history or plan.policy.history


def refuse_unwritable(plan: Plan) -> None:
    """Find out, before the first trial, whether the history can take the run. Raises `UsageError`."""
    suites = dict.fromkeys(str(task.suite) for task in plan.tasks)
    History(history_location(plan)).refuse_unwritable(_day(plan), suites)


def record(plan: Plan, finished: Sequence[FinishedTrial]) -> History:
    """Store a run that is complete, but for trials of earlier runs, which are stored already. Raises `StorageError`."""
    history = History(history_location(plan))
    own = [one for one in finished if not one.trial.reused_from]
    history.write_run(
        plan.run_id,
        _day(plan),
        rows([one.trial for one in own], plan),
        {one.trial.transcript_digest: one.transcript.model_dump_json() for one in own},
    )
    return history


def _day(plan: Plan) -> str:
    return f"{plan.created_at:%Y-%m-%d}"


def masker_of(plan: Plan) -> Masker:
    """The masker of the secrets that the run's policy declares."""
    return Masker.of_environment(plan.policy.secrets)
