"""The run store: the one place where a run is kept: its plan, the parts of its journal, its verdict, its reports."""

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.files.atomic_write import make_private_folder
from passgate.tasks.history.journal import (
    FileJournal,
    FileParts,
    Journal,
    JournalParts,
    LineWithoutTranscript,
    merged,
    parsed_lines,
)
from passgate.tasks.history.lease import Lease, living_holder
from passgate.tasks.history.object_journal import MAIN, ObjectJournal, ObjectParts
from passgate.tasks.history.storage import STATE_FOLDER, LocalStorage, Storage, protect_state_folder, storage_at
from passgate.tasks.history.url_storage import UrlStorage
from passgate.tasks.model.masker import Masker
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import FinishedTrial, Trial
from passgate.tasks.model.verdict import Verdict

LAST: Final = "last"
CHANGE: Final = "change"  # What the run of a change's own files is called, after the id of the run that is judged
_PLAN: Final = "plan.json"
_JOURNAL: Final = "journal.jsonl"
_VERDICT: Final = "verdict.json"
_LOCATION: Final = "location"  # In the folder of a run that is kept at a URL: where that is
_COORDINATOR: Final = "coordinator"  # The id of the process that hands out batches; empty when none does
_PROBE: Final = "probe"
_LEASE: Final = "lease"


def verdict_text(verdict: Verdict) -> str:
    """What verdict.json says."""
    return verdict.model_dump_json(indent=2) + "\n"


class RunStore:
    """One run at its location, a folder or a URL that fsspec knows.

    The process that coordinates the run appends to its journal, and holds the run by a lock or a lease. Earlier
    versions wrote the journal in several parts, which readers merge. For a run at a URL the working folder has a folder
    too, with the location and copies of the verdict and the reports.
    """

    def __init__(self, location: str, here: Path | None = None) -> None:
        """`here` is the folder of this machine for what of the run is kept here; `.passgate/runs/RUN` if not given."""
        self.location = location.rstrip("/")
        self._storage: Storage = storage_at(self.location)
        self.is_elsewhere = "://" in location
        own = STATE_FOLDER.absolute() / "runs" / self.name
        self.here = here or (own if self.is_elsewhere else Path(self.location))
        self._parts: JournalParts = (
            FileParts(self._storage) if isinstance(self._storage, LocalStorage) else ObjectParts(self._storage)
        )

    @classmethod
    def of(cls, run: str) -> "RunStore":
        """The store of a run by its URL, or of one of this working folder by its id. Raises `StorageError`."""
        if "://" in run:
            return cls(run)
        here = (STATE_FOLDER / "runs" / run).absolute()
        location = LocalStorage(here).read(_LOCATION)
        return cls(str(here)) if location is None else cls(location.decode("utf-8", "replace").strip(), here)

    @classmethod
    def new(cls, run_id: str, runs: str | None) -> "RunStore":
        """The store of a run that is to be kept below a URL, or in this working folder without one.

        Raises `UsageError` for what is no URL.
        """
        here = (STATE_FOLDER / "runs" / run_id).absolute()
        if runs is None:
            return cls(str(here))
        if "://" not in runs:
            raise UsageError(f"the run store {runs!r} is no URL: for a folder write file://{Path(runs).absolute()}")
        return cls(f"{runs.rstrip('/')}/{run_id}", here)

    @property
    def runs(self) -> str:
        """The URL or folder that the run is kept in."""
        return self.location.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The id of the run."""
        return self.location.rpartition("/")[2]

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
        return self.here / _VERDICT

    @property
    def plan(self) -> Path:
        """The plan's file, on this machine."""
        return self.path / _PLAN

    @property
    def shown(self) -> str:
        """The location as users know it: a folder relative to the working folder."""
        return self.location if self.is_elsewhere else os.path.relpath(self.location)

    @property
    def change(self) -> "RunStore":
        """The store of the change's own files, where others judge it."""
        return RunStore(f"{self.location}/{CHANGE}", self.here / CHANGE)

    def make(self, name: str) -> Path:
        """An empty folder for files of the run on this machine, in place of an earlier one. Raises `StorageError`."""
        folder = self.here / name
        try:
            make_private_folder(self.here)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=stat.S_IRWXU)
            protect_state_folder()
        except OSError as error:
            raise StorageError(f"cannot make {folder}: {error}") from error
        return folder

    def remove(self) -> None:
        """Take away everything of a run that is not to be."""
        self._storage.clear()
        LocalStorage(self.here).clear()

    def refuse_unwritable(self) -> None:
        """Raise `StorageError` for a URL that cannot be written now."""
        if isinstance(self._storage, UrlStorage):
            probe = self._storage.without_retries()
            probe.write(_PROBE, b"")
            probe.remove([_PROBE])

    def settle_here(self) -> None:
        """Say in the working folder where the run is kept, for commands that give its id. Raises `StorageError`."""
        if self.is_elsewhere:
            LocalStorage(self.here).write(_LOCATION, f"{self.location}\n".encode())

    def begin(self) -> None:
        """Take away the verdict of an earlier end of the run: there is none until this one has ended.

        Raises `StorageError` while another process carries the run on: the verdict may be its own.
        """
        if self.is_elsewhere:
            holder = living_holder(self._storage, _LEASE)
            if holder is not None:
                raise StorageError(f"the run {self.location} is going on: it is held by {holder.described}")
        with self.locked():
            for place in self._places:
                place.remove([_VERDICT])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of a run in a folder of this machine. Raises `StorageError` while another process has it."""
        if self.is_elsewhere or not self.plan.exists():
            yield
            return
        with _locked(self.plan, StorageError(f"the run {self.name} is going on in another process")):
            yield

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the run, as whoever carries it on does: nobody else can meanwhile.

        Raises `UsageError` while somebody else does, or without a journal; `StorageError`.
        """
        if self.is_elsewhere:
            with self.lease():
                yield
            return
        if not self.journal.exists():
            raise UsageError(f"the run {self.name} has no journal any more: run the gate again")
        with _locked(self.plan, UsageError(f"the run {self.name} is going on, or somebody else is signing it off")):
            yield

    def lease(self, lost: Callable[[], None] = lambda: None) -> Lease:
        """What whoever coordinates a run at a URL holds; `lost` is called in another thread once another has it."""
        return Lease(self._storage, _LEASE, f"the run {self.location}", lost=lost)

    def open_journal(self) -> AbstractContextManager[Journal]:
        """Open the journal to append to it.

        To enter it raises `JournalBusyError` while another process has it, and `StorageError`.
        """
        if not isinstance(self._storage, LocalStorage):
            return ObjectJournal(self._storage, MAIN)
        return FileJournal(self._storage.folder / _JOURNAL)

    def read_trials(self) -> list[Trial]:
        """Return the trials of the journal, each once. Raises `StorageError` if it is damaged."""
        return merged(
            (line.trial for line, _ in parsed_lines(content, f"{self.location}/{name}", LineWithoutTranscript))
            for name, content in self.journal_parts()
        )

    def read_journal(self) -> list[FinishedTrial]:
        """Return the trials of `read_trials` with their transcripts. Raises `StorageError` if it is damaged."""
        return list(self.finished(self.read_trials()))

    def finished(self, trials: Iterable[Trial]) -> Iterator[FinishedTrial]:
        """Yield trials of `read_trials` with their transcripts, one at a time: all of them may fill the memory."""
        wanted = {(one.task_id, one.trial): (one.status, one.started_at) for one in trials}
        for name, content in self.journal_parts():
            for one, _ in parsed_lines(content, f"{self.location}/{name}", FinishedTrial):
                key = one.trial.task_id, one.trial.trial
                if wanted.get(key) == (one.trial.status, one.trial.started_at):
                    del wanted[key]
                    yield one

    async def take_over(self, trials: Iterable[FinishedTrial]) -> None:
        """Put trials that another run has measured into the journal, but for those that it holds already."""
        with self.open_journal() as journal:
            journal.drop_torn_line()
            known = {(one.trial.task_id, one.trial.trial) for one in self.read_journal()}
            for one in trials:
                if (one.trial.task_id, one.trial.trial) not in known:
                    await journal.append(one)

    def journal_parts(self) -> Iterator[tuple[str, bytes]]:
        """Yield the files of the journal as they are stored, each by its name. A line may be in two of them."""
        return self._parts.contents()

    def read_line(self, part: str, start: int, end: int) -> bytes:
        """What a part of the journal holds between two bytes. Raises `StorageError`."""
        return self._storage.read(part, start, end) or b""

    def new_lines(self, seen: dict[str, int]) -> Iterator[bytes]:
        """The whole lines that the journal has grown by. `seen` keeps how far each part was read, and moves on."""
        return self._parts.new_lines(seen)

    def write_plan(self, plan: Plan, masker: Masker) -> None:
        """Begin a run. Raises `StorageError`."""
        # Graders tell an option that was given from one that was not, so what was not set is not written.
        self._storage.write(_PLAN, _bytes(masker.json(plan.model_dump_json(exclude_unset=True))))

    def has_plan(self) -> bool:
        """Whether the run was begun."""
        return self._storage.size(_PLAN) is not None

    def plan_digest(self) -> str:
        """SHA-256 of the plan as it is stored. Raises `StorageError`."""
        return hashlib.sha256(self._storage.read(_PLAN) or b"").hexdigest()

    def read_plan(self, digest: str | None = None) -> Plan:
        """The plan of a run that was begun, the one with a digest if that is given.

        Raises `StorageError` for one that cannot be read, and for another one.
        """
        content = self._storage.read(_PLAN) or b""
        if digest is not None and hashlib.sha256(content).hexdigest() != digest:
            raise StorageError(f"{self.location}/{_PLAN} is not the plan that the run began with: nothing was run")
        try:
            return Plan.model_validate_json(content)
        except ValidationError as error:
            raise StorageError(f"{self.location}/{_PLAN} is not the plan of a run: {error}") from error

    def write_coordinator(self, coordinator: str) -> None:
        """Keep the id of the process that hands out batches now, empty if none does. Raises `StorageError`."""
        self._storage.write(_COORDINATOR, coordinator.encode())

    def read_coordinator(self) -> str:
        """Return the id of the process that hands out batches now. Raises `StorageError`."""
        return (self._storage.read(_COORDINATOR) or b"").decode("utf-8", "replace")

    def write_file(self, name: str, content: bytes) -> None:
        """Keep a file with the run, named after its content. Raises `StorageError`."""
        self._storage.write(name, content)

    def read_file(self, name: str) -> bytes | None:
        """A file that is kept with the run; `None` where there is none. Raises `StorageError`."""
        return self._storage.read(name)

    def write_reports(self, verdict: Verdict, reports: Mapping[str, str]) -> None:
        """Write the verdict and the files that are views of it. Raises `StorageError`."""
        for name, text in {_VERDICT: verdict_text(verdict), **reports}.items():
            self._write_twice(name, text)

    def write_report(self, name: str, text: str) -> None:
        """Write one more file that is a view of the run; the name may be that of a file in a folder of it.

        Raises `StorageError`.
        """
        self._write_twice(name, text)

    def _write_twice(self, name: str, text: str) -> None:
        """Write a file where the run is kept, and its copy here, where commands have to know whose copy it is."""
        if self.is_elsewhere and LocalStorage(self.here).size(_LOCATION) is None:
            self.settle_here()
        for place in self._places:
            place.write(name, _bytes(text))

    @property
    def _places(self) -> list[Storage]:
        """Where the verdict and the reports are written: where the run is kept, then in the working folder."""
        return [self._storage, LocalStorage(self.here)] if self.is_elsewhere else [self._storage]

    def has_verdict(self) -> bool:
        """Whether the run has ended with a verdict."""
        return self._storage.size(_VERDICT) is not None

    def judged(self) -> Verdict:
        """The verdict of a run that has one. Raises `UsageError` for another, `StorageError`."""
        verdict = self.read_verdict()
        if verdict is None:
            remedy = f"carry it on with `passgate run {self.read_plan().gate} --resume {self.name}`"
            raise UsageError(f"the run {self.name} has no verdict: {remedy}")
        return verdict

    def read_verdict(self) -> Verdict | None:
        """The verdict of a run; `None` while there is none."""
        content = self._storage.read(_VERDICT)
        if content is None:
            return None
        try:
            return Verdict.model_validate_json(content)
        except ValidationError as error:
            raise StorageError(f"{self.location}/{_VERDICT} is not a verdict: {error}") from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@contextmanager
def _locked(file: Path, busy: Exception) -> Iterator[None]:
    """Hold the lock of a file that is there; raises `busy` while somebody else does."""
    with file.open("rb+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise busy from error
        yield
