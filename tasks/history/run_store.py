"""The run store: the one folder of a run, with its plan, journal, verdict and reports, and where its mirror is."""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.files.atomic_write import make_private_folder, take_lock
from passgate.tasks.history.journal import FileJournal, LineWithoutTranscript, merged, parsed_lines
from passgate.tasks.history.storage import (
    CHANGE,
    LOCATION,
    PLAN,
    STATE_FOLDER,
    LocalStorage,
    UnreachableError,
    ask,
    protect_state_folder,
    storage_at,
)
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.run import Plan
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import FinishedTrial, Trial
from passgate.tasks.model.verdict import Verdict

if TYPE_CHECKING:
    from passgate.tasks.history.mirror import Mirror

LAST: Final = "last"
COORDINATOR: Final = "coordinator"  # The id of the process that hands out batches; empty when none does
_JOURNAL: Final = "journal.jsonl"
_JOURNALS: Final = "journal*.jsonl"  # Earlier versions wrote one for each batch that ran elsewhere
_VERDICT: Final = "verdict.json"
_PROBE: Final = "probe"


def parse_plan(content: bytes | None, location: str, digest: str | None = None) -> Plan:
    """Return the plan in a file's content. Raises `StorageError` if it cannot be read or has another digest."""
    if digest is not None and hashlib.sha256(content or b"").hexdigest() != digest:
        raise StorageError(f"{location}/{PLAN} is not the plan that the run began with: nothing was run")
    try:
        return Plan.model_validate_json(content or b"")
    except ValidationError as error:
        raise StorageError(f"{location}/{PLAN} is not the plan of a run: {error}") from error


class RunStore:
    """One run in its folder, with its mirror. Who coordinates it locks the folder and writes the journal."""

    def __init__(self, folder: Path | str, url: str | None = None) -> None:
        """Open the run in a folder. `url` is that of its mirror."""
        self.here, self.url = Path(folder), url
        self.location = url or str(self.here)  # The URL of the mirror, or the folder if there is none
        self.runs, _, self.name = self.location.rpartition("/")
        """The URL or folder that contains the run, and the id of the run."""
        self.plan, self.journal, self.verdict = (self.here / name for name in (PLAN, _JOURNAL, _VERDICT))
        self._files = LocalStorage(self.here)
        # The file of each transcript's line, where it begins and where it ends: all transcripts may fill the memory
        self._transcript_places: dict[str, tuple[str, int, int]] | None = None

    @classmethod
    def of(cls, run: str) -> "RunStore":
        """Return the store of a run of this working folder by its id, or of a run at a URL, which is fetched first if
        another process has changed it there. Raises `StorageError`, and `UsageError` for a URL without a driver.
        """
        if "://" in run:
            url = run.rstrip("/")
            folder = (STATE_FOLDER / "runs" / url.rpartition("/")[2]).absolute()
            from passgate.tasks.history.mirror import fetch

            fetch(url, folder)
            return cls(folder, url)
        folder = (STATE_FOLDER / "runs" / run).absolute()
        location = LocalStorage(folder).read(LOCATION)
        return cls(folder, None if location is None else location.decode("utf-8", "replace").strip())

    @classmethod
    def new(cls, run_id: str, runs: str | None) -> "RunStore":
        """Return the store of a new run, mirrored below a URL if there is one. Raises `UsageError` for no URL."""
        folder = (STATE_FOLDER / "runs" / run_id).absolute()
        if runs is not None and "://" not in runs:
            raise UsageError(f"the run store {runs!r} is no URL: for a folder write file://{Path(runs).absolute()}")
        return cls(folder, None if runs is None else f"{runs.rstrip('/')}/{run_id}")

    @property
    def shown(self) -> str:
        """The location as users know it: a URL, or a folder relative to the working folder."""
        return self.url or os.path.relpath(self.here)

    @property
    def change(self) -> "RunStore":
        """The store of the change's own files, where others judge it."""
        return RunStore(self.here / CHANGE, f"{self.url}/{CHANGE}" if self.url else None)

    def mirror(self) -> "Mirror | None":
        """Return the mirror of the run, `None` if it has none. Raises `UsageError` for a URL without a driver."""
        if self.url is None:
            return None
        from passgate.tasks.history.mirror import Mirror

        return Mirror(self.here, self.url)

    def make(self, name: str) -> Path:
        """Make an empty folder for files of the run, in place of an earlier one. Raises `StorageError`."""
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
        """Remove the folder of a run that was not begun."""
        self._files.clear()

    def refuse_unwritable(self) -> None:
        """Raise `StorageError` for a URL that can never be written. One that does not answer now may do so later."""
        if self.url is not None:
            storage = storage_at(self.url)

            def probe() -> None:
                storage.write(_PROBE, b"")
                storage.remove(_PROBE)

            with suppress(UnreachableError):
                ask(probe)

    def settle_here(self) -> None:
        """Say in the run's folder where its mirror is. Raises `StorageError`."""
        if self.url is not None:
            self._files.write(LOCATION, f"{self.url}\n".encode())

    def begin(self) -> None:
        """Remove the verdict of an earlier end. Raises `StorageError` while another process continues the run."""
        if (mirror := self.mirror()) is not None:
            with suppress(UnreachableError):
                ask(mirror.refuse_held)
                ask(partial(mirror.storage.remove, _VERDICT))
        with self.lock():
            self._files.remove(_VERDICT)

    @contextmanager
    def lock(self, busy: Exception | None = None) -> Iterator[None]:
        """Lock the folder of the run. Raises `busy`, or `StorageError`, while another process of this machine does."""
        if not self.plan.exists():
            yield
            return
        with ExitStack() as stack:
            try:
                take_lock(stack.enter_context(self.plan.open("rb+")).fileno())
            except BlockingIOError as error:
                raise busy or StorageError(f"the run {self.name} is already running in another process") from error
            except OSError as error:
                raise StorageError(f"cannot lock {self.plan}: {error.strerror or error}") from error
            yield

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the run to continue it, and mirror the changes. Raises `UsageError` if it is held, `StorageError`."""
        if not self.journal.exists():
            raise UsageError(f"the run {self.name} has no journal any more: run the gate again")
        with self.lock(UsageError(f"the run {self.name} is already running, or somebody else is signing it off")):
            mirror = self.mirror()
            if mirror is None:
                yield
                return
            mirror.take()
            yield
            mirror.push()
            mirror.release()

    def open_journal(self) -> FileJournal:
        """Return the journal to append to. To enter it raises `StorageError`, also while another process has it."""
        return FileJournal(self.journal)

    def read_trials(self) -> list[Trial]:
        """Return the trials of the journal, each once. Raises `StorageError` if it is damaged."""
        return merged(
            (line.trial for line, _ in parsed_lines(content, f"{self.here}/{name}", LineWithoutTranscript))
            for name, content in self.journal_parts()
        )

    def read_journal(self) -> list[FinishedTrial]:
        """Return the trials of `read_trials` with their transcripts. Raises `StorageError` if it is damaged."""
        return list(self.finished_trials(self.read_trials()))

    def finished_trials(self, trials: Iterable[Trial]) -> Iterator[FinishedTrial]:
        """Yield trials of `read_trials` with their transcripts, one at a time: all of them may fill the memory."""
        wanted = {(one.task_id, one.trial): (one.status, one.started_at) for one in trials}
        places: dict[str, tuple[str, int, int]] = {}
        for name, content in self.journal_parts():
            start = 0
            for one, end in parsed_lines(content, f"{self.here}/{name}", FinishedTrial):
                if not one.trial.reused_from:
                    places[one.trial.transcript_digest] = name, start, end
                start = end
                key = one.trial.task_id, one.trial.trial
                if wanted.get(key) == (one.trial.status, one.trial.started_at):
                    del wanted[key]
                    yield one
        # Who reads transcripts afterwards need not parse the journal again.
        self._transcript_places = places

    async def take_over(self, trials: Iterable[FinishedTrial]) -> None:
        """Put trials that another run has measured into the journal, but for those that it contains already."""
        with self.open_journal() as journal:
            journal.drop_torn_line()
            known = {(one.trial.task_id, one.trial.trial) for one in self.read_journal()}
            for one in trials:
                if (one.trial.task_id, one.trial.trial) not in known:
                    await journal.append(one)

    def journal_parts(self) -> Iterator[tuple[str, bytes]]:
        """Yield the files of the journal, each by its name. Raises `StorageError`."""
        for file in sorted(self.here.glob(_JOURNALS)):
            yield file.name, self._files.read(file.name) or b""

    def read_transcript(self, digest: str) -> Transcript | None:
        """Return a transcript of the journal, `None` if it has none, as of a reused trial. Raises `StorageError`."""
        try:
            if self._transcript_places is None:
                if not self.journal.exists():
                    raise ValueError("there is no journal")
                for _ in self.finished_trials(()):
                    pass
            place = (self._transcript_places or {}).get(digest)
            if place is None:
                return None
            part, start, end = place
            with (self.here / part).open("rb") as stream:
                stream.seek(start)
                return FinishedTrial.model_validate_json(stream.read(end - start)).transcript
        except (OSError, ValueError) as error:
            raise StorageError(f"cannot read the transcripts of {self.location}: {error}") from error

    def new_lines(self, seen: dict[str, int]) -> Iterator[bytes]:
        """Yield the whole lines that came since. `seen` keeps how far each file was read. Raises `StorageError`."""
        for file in sorted(self.here.glob(_JOURNALS)):
            try:
                with file.open("rb") as stream:
                    stream.seek(seen.get(file.name, 0))
                    whole, newline, _ = stream.read().rpartition(b"\n")
            except OSError as error:
                raise StorageError(f"cannot read {file}: {error}") from error
            seen[file.name] = seen.get(file.name, 0) + len(whole) + len(newline)
            yield from whole.splitlines()

    def write_plan(self, plan: Plan, masker: Masker) -> None:
        """Begin a run. Raises `StorageError`."""
        # Graders tell an option that was given from one that was not, so what was not set is not written.
        self._files.write(PLAN, _bytes(masker.json(plan.model_dump_json(exclude_unset=True))))

    def has_plan(self) -> bool:
        """Return whether the run was begun, here or at its URL, as far as that answers. Raises `StorageError`."""
        if self.plan.exists() or self.url is None:
            return self.plan.exists()
        try:
            return ask(partial(storage_at(self.url).read, PLAN)) is not None
        except UnreachableError:
            return False

    def plan_digest(self) -> str:
        """Return the SHA-256 of the plan as it is stored. Raises `StorageError`."""
        return hashlib.sha256(self._files.read(PLAN) or b"").hexdigest()

    def read_plan(self) -> Plan:
        """Return the plan of a run that was begun. Raises as `parse_plan`."""
        return parse_plan(self._files.read(PLAN), self.location)

    def write_coordinator(self, coordinator: str) -> None:
        """Tell workers the id of the process that hands out batches now, empty for none. Raises `StorageError`."""
        self._files.write(COORDINATOR, coordinator.encode())
        if self.url is not None:
            with suppress(UnreachableError):
                ask(partial(storage_at(self.url).write, COORDINATOR, coordinator.encode()))

    def write_file(self, name: str, content: bytes) -> None:
        """Keep a file with the run. Raises `StorageError`."""
        self._files.write(name, content)

    def read_file(self, name: str) -> bytes | None:
        """Return a file that is kept with the run, `None` if there is none. Raises `StorageError`."""
        return self._files.read(name)

    def write_reports(self, verdict: Verdict, reports: Mapping[str, str]) -> None:
        """Write the verdict and the files that are views of it. Raises `StorageError`."""
        for name, text in {_VERDICT: verdict.model_dump_json(indent=2) + "\n", **reports}.items():
            self.write_report(name, text)

    def write_report(self, name: str, text: str) -> None:
        """Write one more file that is a view of the run, in its folder or in a folder there. Raises `StorageError`."""
        self._files.write(name, _bytes(text))

    def copy_to_url(self) -> None:
        """Copy what has changed to the URL, unless another machine has continued the run. Raises `StorageError`."""
        if (mirror := self.mirror()) is not None:
            mirror.copy()

    def has_verdict(self) -> bool:
        """Return whether the run has ended with a verdict."""
        return self.verdict.exists()

    def required_verdict(self) -> Verdict:
        """Return the verdict of a run that has one. Raises `UsageError` for another, `StorageError`."""
        verdict = self.read_verdict()
        if verdict is None:
            remedy = f"resume it with `passgate run {self.read_plan().gate} --resume {self.name}`"
            raise UsageError(f"the run {self.name} has no verdict: {remedy}")
        return verdict

    def read_verdict(self) -> Verdict | None:
        """Return the verdict of a run, `None` while there is none. Raises `StorageError`."""
        return self._verdict(self._files.read(_VERDICT))

    def fetch_sign_off(self) -> None:
        """Take over a sign-off that another machine has written to the URL. Raises `StorageError`."""
        if self.url is not None:
            content = storage_at(self.url).read(_VERDICT)
            verdict = self._verdict(content)
            if content is not None and verdict is not None and verdict.sign_off is not None:
                self._files.write(_VERDICT, content)

    def _verdict(self, content: bytes | None) -> Verdict | None:
        try:
            return None if content is None else Verdict.model_validate_json(content)
        except ValidationError as error:
            raise StorageError(f"{self.location}/{_VERDICT} is not a verdict: {error}") from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
