"""The run store: the one place where a run is kept: its plan, the parts of its journal, its verdict, its reports."""

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.files.atomic_write import make_private_folder
from passgate.tasks.history.journal import (
    FileJournal,
    Journal,
    LineWithoutTranscript,
    ObjectJournal,
    merged,
    parsed_lines,
)
from passgate.tasks.history.masking import Masker
from passgate.tasks.history.storage import STATE_FOLDER, LocalStorage, protect_state_folder, storage_at
from passgate.tasks.model.run import Plan
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import FinishedTrial, Trial
from passgate.tasks.model.verdict import Verdict

LAST = "last"


CHANGE = "change"  # What the run of a change's own files is called, after the id of the run that is judged


_PLAN = "plan.json"
_JOURNAL = "journal.jsonl"
_PARTS = "journal*.jsonl"
_VERDICT = "verdict.json"
_ATTESTATION = "verdict.intoto.json"


def verdict_text(verdict: Verdict) -> str:
    """What verdict.json says."""
    return verdict.model_dump_json(indent=2) + "\n"


class RunStore:
    """One run at its location, a folder or a URL that fsspec knows.

    Whoever coordinates the run appends to `journal.jsonl`, and holds the run by that. A process that runs a batch of it
    elsewhere appends to a part of its own, `journal.PART.jsonl`, and readers merge the parts.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self._storage = storage_at(location)

    @classmethod
    def of(cls, run_id: str) -> "RunStore":
        """The store of a run of this working folder: `.passgate/runs/RUN`."""
        return cls(str((STATE_FOLDER / "runs" / run_id).absolute()))

    @property
    def name(self) -> str:
        """The id of the run."""
        return self.location.rstrip("/").rpartition("/")[2]

    @property
    def path(self) -> Path:
        """The folder of a run that is kept on this machine."""
        if not isinstance(self._storage, LocalStorage):
            raise UsageError(f"the run store {self.location} is no folder of this machine")
        return self._storage.folder

    @property
    def journal(self) -> Path:
        """The coordinator's part of the journal, on this machine."""
        return self.path / _JOURNAL

    @property
    def verdict(self) -> Path:
        """The verdict's file, on this machine."""
        return self.path / _VERDICT

    @property
    def attestation(self) -> Path:
        """The signed statement about the verdict, where somebody has signed it off with a key."""
        return self.path / _ATTESTATION

    @property
    def plan(self) -> Path:
        """The plan's file, on this machine."""
        return self.path / _PLAN

    @property
    def shown(self) -> str:
        """The location as users know it: a folder relative to the working folder."""
        return os.path.relpath(self.location) if isinstance(self._storage, LocalStorage) else self.location

    @property
    def change(self) -> "RunStore":
        """The store of the change's own files, where others judge it."""
        return RunStore(f"{self.location}/{CHANGE}")

    def make(self, name: str) -> Path:
        """A new, empty folder of the run, for files that no report is. Raises `StorageError`."""
        try:
            folder = self.path / name
            make_private_folder(self.path)
            folder.mkdir(mode=stat.S_IRWXU)
            protect_state_folder()
        except OSError as error:
            raise StorageError(f"cannot make {self.path / name}: {error}") from error
        return folder

    def remove(self) -> None:
        """Take away everything of a run that is not to be."""
        self._storage.clear()

    def begin(self) -> None:
        """Take away the verdict of an earlier end of the run: there is none until this one has ended.

        Raises `StorageError` while another process carries the run on: the verdict may be its own.
        """
        if isinstance(self._storage, LocalStorage) and self.journal.exists():
            with _locked(self.journal, StorageError(f"the run {self.name} is going on in another process")):
                pass
        self._storage.remove(_ATTESTATION)
        self._storage.remove(_VERDICT)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the run, as whoever appends to its journal does: nobody else can meanwhile.

        Raises `UsageError` while somebody else does, or without a journal.
        """
        if not self.journal.exists():
            raise UsageError(f"the run {self.name} has no journal any more: run the gate again")
        with _locked(self.journal, UsageError(f"the run {self.name} is going on, or somebody else is signing it off")):
            yield

    def open_journal(self, masker: Masker, part: str = "") -> AbstractContextManager[Journal]:
        """The journal to append to: the coordinator's, or a part of its own for a batch that runs elsewhere.

        To enter it raises `JournalBusyError` while another process has the part on this machine, and `StorageError`.
        """
        name = f"journal.{part}.jsonl" if part else _JOURNAL
        if isinstance(self._storage, LocalStorage):
            return FileJournal(self.path / name, masker)
        return ObjectJournal(self._storage, name, masker)

    def read_trials(self) -> list[Trial]:
        """The trials of all parts of the journal, each once. Raises `StorageError` for a part that is damaged."""
        return merged(
            (line.trial for line, _ in parsed_lines(content, f"{self.location}/{name}", LineWithoutTranscript))
            for name, content in self.journal_parts()
        )

    def read_journal(self) -> list[FinishedTrial]:
        """The trials of `read_trials` with their transcripts. Raises `StorageError` for a part that is damaged."""
        return list(self.finished(self.read_trials()))

    def finished(self, trials: Iterable[Trial]) -> Iterator[FinishedTrial]:
        """Trials of `read_trials` with their transcripts, one at a time: those of a whole run may fill the memory."""
        wanted = {(one.task_id, one.trial): (one.status, one.started_at) for one in trials}
        for name, content in self.journal_parts():
            for one, _ in parsed_lines(content, f"{self.location}/{name}", FinishedTrial):
                key = one.trial.task_id, one.trial.trial
                if wanted.get(key) == (one.trial.status, one.trial.started_at):
                    del wanted[key]
                    yield one

    async def take_over(self, trials: Iterable[FinishedTrial], masker: Masker) -> None:
        """Put trials that another run has measured into the journal, but for those that it holds already."""
        with self.open_journal(masker) as journal:
            journal.drop_torn_line()
            known = {(one.trial.task_id, one.trial.trial) for one in self.read_journal()}
            for one in trials:
                if (one.trial.task_id, one.trial.trial) not in known:
                    await journal.append(one)

    def journal_parts(self) -> Iterator[tuple[str, bytes]]:
        """The parts of the journal, each by its name with what it holds."""
        for name in self._storage.names(_PARTS):
            yield name, self._storage.read(name) or b""

    def read_line(self, part: str, start: int, end: int) -> bytes:
        """What a part of the journal holds between two bytes. Raises `StorageError`."""
        return self._storage.read(part, start, end) or b""

    def new_lines(self, seen: dict[str, int]) -> Iterator[bytes]:
        """The whole lines that the journal has grown by. `seen` keeps how far each part was read, and moves on."""
        for name in self._storage.names(_PARTS):
            read = seen.get(name, 0)
            if self._storage.size(name) == read:
                continue
            whole, newline, _ = (self._storage.read(name, read) or b"").rpartition(b"\n")
            seen[name] = read + len(whole) + len(newline)
            yield from whole.splitlines()

    def write_plan(self, plan: Plan, masker: Masker) -> None:
        """Begin a run. Raises `StorageError`."""
        # Graders tell an option that was given from one that was not, so what was not set is not written.
        self._storage.write(_PLAN, masker.json(plan.model_dump_json(exclude_unset=True)))

    def has_plan(self) -> bool:
        """Whether the run was begun."""
        return self._storage.size(_PLAN) is not None

    def read_plan(self) -> Plan:
        """The plan of a run that was begun. Raises `StorageError` for one that cannot be read."""
        try:
            return Plan.model_validate_json(self._storage.read(_PLAN) or b"")
        except (StorageError, ValidationError) as error:
            raise StorageError(f"{self.location}/{_PLAN} is not the plan of a run: {error}") from error

    def write_reports(self, verdict: Verdict, reports: Mapping[str, str]) -> None:
        """Write the verdict and the files that are views of it. Raises `StorageError`."""
        self._storage.write(_VERDICT, verdict_text(verdict))
        for name, text in reports.items():
            self._storage.write(name, text)

    def write_attestation(self, text: str | None) -> None:
        """Write the signed statement about the verdict, or take away that of an earlier one. Raises `StorageError`."""
        if text is None:
            self._storage.remove(_ATTESTATION)
        else:
            self._storage.write(_ATTESTATION, text)

    def has_verdict(self) -> bool:
        """Whether the run has ended with a verdict."""
        return self._storage.size(_VERDICT) is not None

    def read_verdict(self) -> Verdict | None:
        """The verdict of a run; `None` while there is none."""
        if not self.has_verdict():
            return None
        try:
            return Verdict.model_validate_json(self._storage.read(_VERDICT) or b"")
        except (StorageError, ValidationError) as error:
            raise StorageError(f"{self.location}/{_VERDICT} is not a verdict: {error}") from error


@contextmanager
def _locked(file: Path, busy: Exception) -> Iterator[None]:
    """Hold the lock of a file that is there; raises `busy` while somebody else does."""
    with file.open("rb+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise busy from error
        yield


class JournalTranscripts:
    """Call it with the digest of a transcript. In memory it holds where each line of the journal lies, no line."""

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def __call__(self, digest: str) -> Transcript | None:
        """The transcript; `None` where the journal has none: a reused trial's is kept with the run that it is of.

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
