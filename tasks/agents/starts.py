"""Whether the agent can be run at all, as the trials of a run show: its command starts, its models have prices."""

from collections.abc import Iterable, Sequence
from typing import Final

from passgate.tasks.errors import UsageError
from passgate.tasks.model.trial import MEASURED, FinishedTrial

ENOUGH: Final = 3
"""So many trials show that a command is wrong: one may have broken its own PATH, and all others are spared."""
START_REMEDY: Final = (
    "check the command; it starts in the trial's workspace, and {project}/FILE is a file of the repository. "
    "`passgate doctor AGENT --try` shows one trial"
)


class Starts:
    """Counts the trials of a run that could not be started, until one of them has started, and those that ended for
    want of a price.

    Once one has started, a trial that cannot be started is the agent's own doing and has failed.
    """

    def __init__(self) -> None:
        self._started = False
        self._failures: list[str] = []
        self._unpriced: list[str] = []

    def resume(self, before: Iterable[FinishedTrial]) -> None:
        """Take in the trials that the run has already; those of other runs say nothing of this machine."""
        self._started = _one_has_started(one for one in before if not one.trial.reused_from)

    def add(self, finished: FinishedTrial) -> None:
        """Take in a finished trial. Raise `UsageError` once enough of them show that the agent cannot be run."""
        trial = finished.trial
        if finished.has_not_started:
            self._failures.append(finished.transcript.detail)
        elif trial.status in MEASURED:
            self._started = True
        if len(self._failures) >= ENOUGH:
            self.refuse_wrong_command()
        if trial.unpriced_model:
            self._unpriced.append(trial.reason)
            if len(self._unpriced) >= ENOUGH:
                raise UsageError(f"{self._unpriced[0]}; the run stops after {ENOUGH} such trials")

    def refuse_wrong_command(self) -> None:
        """Raise `UsageError` if no trial could be started; return if there was none."""
        if self._failures and not self._started:
            count = len(self._failures)
            trials = f"any of {count} trials" if count > 1 else "the one trial"
            raise UsageError(f"the agent could not be started in {trials}: {self._failures[0]}; {START_REMEDY}")


def counted_trials(finished: Sequence[FinishedTrial]) -> list[FinishedTrial]:
    """Return a run's trials that say something of the agent: where its command was wrong, it was never started."""
    return list(finished) if _one_has_started(finished) else [one for one in finished if not one.has_not_started]


def _one_has_started(finished: Iterable[FinishedTrial]) -> bool:
    return any(one.trial.status in MEASURED and not one.has_not_started for one in finished)
