"""How a verdict came about, in the order and the words that every report has for it."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.verdict import Confirmation, Exemption, OtherVerdict, Reason, SignOff, Verdict
from passgate.tasks.model.verdict import Finding as Confirmed
from passgate.tasks.reports import figures

WITHHELD_LIMIT = 10
"""Of the tasks that are not admitted, and of those in quarantine, so many are named."""
EDIT_LIMIT = 10
OTHER_REASON_LIMIT = 5
"""Of the reasons of the verdict that the change's own files would have given."""

_RUNS = 3
_MODELS = 3
_ORDER = (Confirmed.FALLEN, Confirmed.UNFINISHED, Confirmed.UNDECIDED, Confirmed.FITS)


def confirmations(verdict: Verdict) -> tuple[Confirmation, ...]:
    """The fallen tasks first, then those that are open, then those that fit their baseline."""
    return tuple(sorted(verdict.confirmations, key=lambda one: (_ORDER.index(one.finding), one.task)))


def withheld(verdict: Verdict, tasks: Iterable[Exemption]) -> tuple[tuple[Exemption, bool], ...]:
    """Each with whether its task did not pass now; those come first, the others stay in their order."""
    open_or_red = {task.name for task in verdict.measurement.tasks if task.state is not TaskState.PASSED}
    return tuple(sorted(((one, one.task in open_or_red) for one in tasks), key=lambda pair: not pair[1]))


def withheld_title(tasks: Sequence[Exemption]) -> str:
    """`14 tasks, whose failures do not block (violations do)`."""
    return f"{figures.count(len(tasks), 'task')}, whose failures do not block (violations do)"


def other_reasons(other: OtherVerdict) -> tuple[Reason, ...]:
    """What would have blocked by the change's own files."""
    return tuple(reason for reason in other.reasons if reason.blocking)


def notes(verdict: Verdict) -> tuple[str, ...]:
    """The verdict's notes, after what there is to say of trials that were not run for it."""
    return (*_stopped_early(verdict), *_reused(verdict), *verdict.notes)


def _stopped_early(verdict: Verdict) -> Iterator[str]:
    stopped = [task for task in verdict.measurement.tasks if task.stopped_early]
    saved = sum(task.not_run for task in stopped)
    if saved:
        decided = f"{figures.count(len(stopped), 'task')} {'was' if len(stopped) == 1 else 'were'} decided"
        yield f"{figures.count(saved, 'trial')} saved by stopping early: {decided} before the last planned trial"


def _reused(verdict: Verdict) -> Iterator[str]:
    runs = Counter(task.reused_from for task in verdict.measurement.tasks if task.reused_from)
    if not runs:
        return
    named = [run for run, _ in runs.most_common(_RUNS)]
    more = f" and {figures.count(len(runs) - len(named), 'other run')}" if len(runs) > len(named) else ""
    yield (
        f"{figures.count(runs.total(), 'task')} not run again: nothing they depend on has changed since "
        f"{', '.join(named)}{more}"
    )


def models(verdict: Verdict) -> str:
    """The names of the models that answered, as in `a, b, c and 2 more`; empty when none is known."""
    names = sorted({name for task in verdict.measurement.tasks for name in task.models})
    more = f" and {len(names) - _MODELS} more" if len(names) > _MODELS else ""
    return f"{', '.join(names[:_MODELS])}{more}"


def sign_off_commands(verdict: Verdict) -> tuple[str, ...]:
    """The lines of the two shell commands of which one ends the waiting."""
    run = shlex.quote(verdict.run_id)
    return tuple(
        line
        for decision in ("approve", "reject")
        for line in (f"passgate sign-off {run} \\", f"  --by NAME --decision {decision} --reason TEXT")
    )


def signed(sign_off: SignOff) -> str:
    """`approved by NAME at 2026-04-01 02:09:00+00:00: REASON`."""
    return f"{sign_off.decided} at {sign_off.at.isoformat(sep=' ', timespec='seconds')}: {sign_off.reason}"
