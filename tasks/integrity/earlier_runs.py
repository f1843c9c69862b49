"""The runs of a history, for whoever judges, reuses or shows them: none that a change brings, none that cannot be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pandas as pd

from passgate.tasks.errors import StorageError
from passgate.tasks.history.dataset import History
from passgate.tasks.history.plausible import CHECKED, implausible_runs
from passgate.tasks.integrity.merge_base import commit_times
from passgate.tasks.integrity.tracked import refuse_tracked

_NAMED = 3


@dataclass(frozen=True)
class EarlierRuns:
    """Rows of a history that can be what they say."""

    trials: pd.DataFrame
    left_out: str = ""
    """How many trials are not among them, and why; empty where all are."""


def open_history(location: str, checkout: Path) -> History:
    """The history at a folder or URL, for runs of what is checked out in a folder.

    Raises `UsageError` for one that git tracks there, `StorageError` for one that cannot be opened.
    """
    history = History(location)
    if history.folder is not None:
        refuse_tracked(f"the history {location}", history.folder, checkout)
    return history


def read_earlier_runs(
    location: str, checkout: Path, now: datetime, columns: Sequence[str], where: Mapping[str, str] | None = None
) -> EarlierRuns:
    """The rows of a history whose columns have these values, without the runs that cannot be what they say.

    `checkout` lies in the repository whose commits the runs name. Raises as `open_history`, and `StorageError` for a
    history that cannot be read.
    """
    wanted = tuple(dict.fromkeys((*columns, *CHECKED)))
    trials = open_history(location, checkout).trials(where, wanted)
    try:
        wrong = implausible_runs(trials, commit_times(checkout, trials["git_commit"].dropna().unique()), now)
    except (ValueError, TypeError, OverflowError) as error:
        raise StorageError(f"the history {location} holds rows that are not passgate's: {error}") from error
    is_wrong = trials["run_id"].isin(list(wrong))
    return EarlierRuns(trials[~is_wrong][list(columns)].reset_index(drop=True), _told(wrong, int(is_wrong.sum())))


def _told(wrong: Mapping[str, str], trials: int) -> str:
    if not wrong:
        return ""
    named = ", ".join(f"{run_id} ({why})" for run_id, why in sorted(wrong.items(), reverse=True)[:_NAMED])
    more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
    counted = f"{trials} trial{'s' if trials != 1 else ''} of {len(wrong)} run{'s' if len(wrong) != 1 else ''}"
    return f"{counted} in the history cannot be what they say and are left out: {named}{more}"
