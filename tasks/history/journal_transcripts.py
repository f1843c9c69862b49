"""The transcripts of a run that is not in the history yet, from its journal."""

from functools import cached_property

from passgate.tasks.errors import StorageError
from passgate.tasks.history.journal import LineWithoutTranscript, parsed_lines
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import FinishedTrial


class JournalTranscripts:
    """Call it with the digest of a transcript. In memory it holds where each line of the journal lies, and no line."""

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def __call__(self, digest: str) -> Transcript | None:
        """Return the transcript, or `None` if the journal has none: a reused trial's is in the run that it is from.

        Raises `StorageError`.
        """
        try:
            place = self._places.get(digest)
            if place is None:
                return None
            return FinishedTrial.model_validate_json(self._store.read_line(*place)).transcript
        except ValueError as error:
            raise StorageError(f"cannot read the transcripts of {self._store.location}: {error}") from error

    @cached_property
    def _places(self) -> dict[str, tuple[str, int, int]]:
        """The part of each transcript's line, where it begins and where it ends. A torn last line has none."""
        places: dict[str, tuple[str, int, int]] = {}
        parts = list(self._store.journal_parts())
        if not parts:
            raise ValueError("there is no journal")
        for name, content in parts:
            start = 0
            for line, end in parsed_lines(content, name, LineWithoutTranscript):
                if not line.trial.reused_from:
                    places[line.trial.transcript_digest] = name, start, end
                start = end
        return places
