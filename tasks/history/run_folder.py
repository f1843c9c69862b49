"""The folder of one run: its plan, its journal, its verdict and its reports."""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.files.atomic_write import PRIVATE_FILE, close_to_others, make_private_folder, write_atomically
from passgate.tasks.history.masking import Masker
from passgate.tasks.model.run import Plan
from passgate.tasks.model.verdict import Verdict

STATE_FOLDER = Path(".passgate")


LAST = "last"


CHANGE = "change"
"""What the run of a change's own files is called, after the id of the run that is judged."""


_VERDICT = "verdict.json"


_ATTESTATION = "verdict.intoto.json"


def verdict_text(verdict: Verdict) -> str:
    """What verdict.json says."""
    return verdict.model_dump_json(indent=2) + "\n"


class RunFolder:
    """`.passgate/runs/RUN/` in the working folder."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self.path = (STATE_FOLDER / "runs" / run_id).absolute()

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def verdict(self) -> Path:
        return self.path / _VERDICT

    @property
    def attestation(self) -> Path:
        """The signed statement about the verdict, where somebody has signed it off with a key."""
        return self.path / _ATTESTATION

    @property
    def plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def shown(self) -> str:
        """The folder as users know it: relative to the working folder."""
        return os.path.relpath(self.path)

    @property
    def change(self) -> "RunFolder":
        """The folder of the change's own files, where others judge it."""
        return RunFolder(f"{self._run_id}/{CHANGE}")

    def make(self, name: str) -> Path:
        """A new, empty folder of the run, for files that no report is. Raises `StorageError`."""
        try:
            folder = self.path / name
            make_private_folder(self.path)
            folder.mkdir(mode=stat.S_IRWXU)
            _protect(STATE_FOLDER)
        except OSError as error:
            raise StorageError(f"cannot make {self.path / name}: {error}") from error
        return folder

    def remove(self) -> None:
        """Take away everything of a run that is not to be."""
        shutil.rmtree(self.path, ignore_errors=True)

    def begin(self) -> None:
        """Take away the verdict of an earlier end of the run: there is none until this one has ended.

        Raises `StorageError` while another process carries the run on: the verdict may be its own.
        """
        self._refuse_going_on()
        self.attestation.unlink(missing_ok=True)
        self.verdict.unlink(missing_ok=True)

    def _refuse_going_on(self) -> None:
        if not self.journal.exists():
            return
        with self.journal.open("rb+") as journal:
            try:
                fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise StorageError(f"the run {self._run_id} is going on in another process") from error

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the run, as whoever appends to its journal does: nobody else can meanwhile.

        Raises `UsageError` while somebody else does, or without a journal.
        """
        try:
            journal = self.journal.open("rb+")
        except FileNotFoundError as error:
            raise UsageError(f"the run {self.path.name} has no journal any more: run the gate again") from error
        with journal:
            try:
                fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(f"the run {self.path.name} is going on, or somebody else is signing it off") from error
            yield

    def write_plan(self, plan: Plan, masker: Masker) -> None:
        """Begin a run. Raises `StorageError`."""
        # Graders tell an option that was given from one that was not, so what was not set is not written.
        self._write("plan.json", masker.json(plan.model_dump_json(exclude_unset=True)))

    def read_plan(self) -> Plan:
        """The plan of a run that was begun. Raises `StorageError` for one that cannot be read."""
        try:
            return Plan.model_validate_json(self.plan.read_bytes())
        except (OSError, ValidationError) as error:
            raise StorageError(f"{self.plan} is not the plan of a run: {error}") from error

    def write_reports(self, verdict: Verdict, reports: Mapping[str, str]) -> None:
        """Write the verdict and the files that are views of it. Raises `StorageError`."""
        self._write(_VERDICT, verdict_text(verdict))
        for name, text in reports.items():
            self._write(name, text)

    def write_attestation(self, text: str | None) -> None:
        """Write the signed statement about the verdict, or take away that of an earlier one. Raises `StorageError`."""
        if text is None:
            self.attestation.unlink(missing_ok=True)
        else:
            self._write(_ATTESTATION, text)

    def read_verdict(self) -> Verdict | None:
        """The verdict of a run; `None` while there is none."""
        if not self.verdict.is_file():
            return None
        try:
            return Verdict.model_validate_json(self.verdict.read_bytes())
        except (OSError, ValidationError) as error:
            raise StorageError(f"{self.verdict} is not a verdict: {error}") from error

    def _write(self, name: str, text: str) -> None:
        """Write a file whole or not at all."""
        try:
            make_private_folder(self.path)
            _protect(STATE_FOLDER)
        except OSError as error:
            raise StorageError(f"cannot write {self.path / name}: {error}") from error
        write_atomically(self.path / name, text, mode=PRIVATE_FILE)


def _protect(folder: Path) -> None:
    """What runs leave behind is for its owner only, and belongs in no commit; the folder says so itself."""
    close_to_others(folder)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        write_atomically(ignore, "*\n", mode=PRIVATE_FILE)
