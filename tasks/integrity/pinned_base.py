"""What a change is compared with where a commit is pinned."""

from pathlib import Path

from passgate.tasks.integrity.merge_base import ancestors_of
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.run import Base


def pinned_base(base: Base, pins: Pins | None, folder: Path) -> Base:
    """The base with the pinned commit's ancestors for its own; as it is where no commit is pinned.

    Its own commit stays, by whose files a change is judged. `folder` lies in the repository; where that does not know
    the pinned commit, the note says so, and only runs of the commit itself are the baseline.
    """
    if pins is None or pins.commit is None:
        return base
    ancestors = ancestors_of(folder, pins.commit)
    unknown = f"the pinned commit {pins.commit} is not known here, and so its ancestors are not: fetch the history"
    return base.model_copy(update={"ancestors": ancestors, "note": base.note if ancestors else unknown})
