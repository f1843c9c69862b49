"""The folder of one run: its plan, its journal, its verdict and its reports."""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.masking import Masker
from passgate.tasks.model.run import Plan
from passgate.tasks.model.verdict import Verdict

STATE_FOLDER = Path(".passgate")
LAST = "last"


class RunFolder:
    """`.passgate/runs/RUN/` in the working folder."""

    def __init__(self, run_id: str) -> None:
        self.path = (STATE_FOLDER / "runs" / run_id).absolute()

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def verdict(self) -> Path:
        return self.path / "verdict.json"

    @property
    def plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def shown(self) -> str:
        """The folder as users know it: relative to the working folder."""
        return os.path.relpath(self.path)

    def begin(self) -> None:
        """Take away the verdict of an earlier end of the run: there is none until this one has ended."""
        self.verdict.unlink(missing_ok=True)

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
        self._write("verdict.json", verdict.model_dump_json(indent=2) + "\n")
        for name, text in reports.items():
            self._write(name, text)

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
            self.path.mkdir(parents=True, exist_ok=True)
            _keep_out_of_git(STATE_FOLDER)
            unfinished = self.path / f".{name}.{os.getpid()}"
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(self.path / name)
        except OSError as error:
            raise StorageError(f"cannot write {self.path / name}: {error}") from error


def _keep_out_of_git(folder: Path) -> None:
    """What runs leave behind belongs in no commit; the folder says so itself."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def find_run(name: str) -> str:
    """The id of a run by its id, the beginning of it, or `last`. Raises `UsageError`."""
    folder = STATE_FOLDER / "runs"
    known = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    matching = known[-1:] if name == LAST else [run_id for run_id in known if run_id.startswith(name)]
    if len(matching) == 1 or name in matching:
        return name if name in matching else matching[0]
    if not matching:
        raise UsageError(f"no run {name!r} in {folder}" + (f"; the newest is {known[-1]}" if known else ""))
    raise UsageError(f"{name!r} is the beginning of {len(matching)} runs: {', '.join(matching[:5])}")
