"""The transcripts of a run by their digests, read from its journal when they are asked for."""

from functools import cached_property
from pathlib import Path

from passgate.tasks.errors import StorageError
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import FinishedTrial


class JournalTranscripts:
    """Call it with the digest of a transcript. In memory it holds where each line of the journal begins, no line."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal

    def __call__(self, digest: str) -> Transcript | None:
        """The transcript; `None` where the journal has none: a reused trial's is kept with the run that it is of.

        Raises `StorageError`.
        """
        try:
            place = self._places.get(digest)
            if place is None:
                return None
            with self._journal.open("rb") as journal:
                journal.seek(place)
                return FinishedTrial.model_validate_json(journal.readline()).transcript
        except (OSError, ValueError) as error:
            raise StorageError(f"cannot read the transcripts of {self._journal}: {error}") from error

    @cached_property
    def _places(self) -> dict[str, int]:
        """Where the line of each transcript begins. A torn last line, as a killed run leaves it, has none."""
        places, place = {}, 0
        with self._journal.open("rb") as journal:
            for line in journal:
                if line.endswith(b"\n"):
                    trial = FinishedTrial.model_validate_json(line).trial
                    if not trial.reused_from:
                        places[trial.transcript_digest] = place
                place += len(line)
        return places
