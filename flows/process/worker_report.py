"""What the worker tells its supervisor, as lines of JSON: that a run has begun, and the exit code of the command."""

import json
import os
from dataclasses import asdict, dataclass


@dataclass(frozen=True, kw_only=True)
class BegunRun:
    """A run that has begun, and so has no verdict of an earlier end any more."""

    run_id: str
    gate: str
    verdict_file: str  # Absolute


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What a worker has told so far."""

    run: BegunRun | None = None
    exit_code: int | None = None


class WorkerReport:
    """The worker's end of the pipe to its supervisor; without one, nobody is told."""

    def __init__(self, pipe: int | None = None) -> None:
        self._pipe = pipe

    def run_begun(self, run: BegunRun) -> None:
        """Say which run the command is about: its verdict is the command's exit code."""
        self._tell({"run": asdict(run)})

    def ended(self, exit_code: int) -> None:
        """Say how the command has ended, when all is done but the end of the process."""
        self._tell({"exit_code": exit_code})

    def _tell(self, said: dict[str, object]) -> None:
        if self._pipe is not None:
            os.write(self._pipe, json.dumps(said).encode() + b"\n")


def read_report(text: bytes) -> Reported:
    """What a worker has told; an unfinished last line is left out."""
    lines = text.split(b"\n")[:-1]
    said = {key: value for line in lines for key, value in json.loads(line).items()}
    run = BegunRun(**said["run"]) if "run" in said else None
    return Reported(run=run, exit_code=said.get("exit_code"))
