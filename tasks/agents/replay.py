"""Recorded transcripts as an agent: `replay:FOLDER`, or `replay` for the recordings of the tasks themselves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from passgate.tasks.agents.interface import Agent, AgentSandbox, Attempt
from passgate.tasks.agents.tools import RecordedTools, recording_of
from passgate.tasks.agents.transcripts import read_transcript_file
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.metering.access import ModelAccess
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript


class ReplayAgent(Agent):
    """Says and does what a recorded transcript holds, in one turn, the user's part included. Nothing is run."""

    has_conversations = False

    def __init__(self, folder: Path | None, suites_folder: Path) -> None:
        self._folder = folder
        self._suites_folder = suites_folder

    @classmethod
    def from_spec(cls, spec: AgentSpec, suites_folder: Path) -> Self:
        """Raises `UsageError` for a folder that is not there."""
        target = spec.target
        if target and not Path(target).is_dir():
            raise UsageError(f"the agent replay:{target} needs a folder of transcripts, and {target} is none")
        return cls(Path(target).absolute() if target else None, suites_folder)

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        """Raises `MeasurementError` when there is no recording that can be played."""
        played = self._from_folder(self._folder, attempt) if self._folder else self._from_task(task)
        if task.replay is None:
            return played
        held = RecordedTools(recording_of(task.replay, self._suites_folder), task.replay.match, played.tool_calls)
        difference = held.mismatch or held.missing
        if not difference or played.end is not EndReason.COMPLETED:
            return played
        return played.model_copy(update={"end": EndReason.REPLAY_MISMATCH, "detail": difference})

    def _from_task(self, task: EvalTask) -> Transcript:
        if task.replay is None:
            raise MeasurementError(
                f"{task.file} has no `environment.replay`, so there is nothing to play: "
                "name a folder of transcripts with replay:FOLDER"
            )
        return recording_of(task.replay, self._suites_folder)

    def _from_folder(self, folder: Path, attempt: Attempt) -> Transcript:
        places = list(_places(folder, attempt))
        for place in places:
            transcript = read_transcript_file(place)
            if transcript is not None:
                return transcript
        looked = ", ".join(str(place.relative_to(folder)) for place in places)
        raise MeasurementError(f"no transcript of {attempt.task_id}, trial {attempt.trial}, in {folder}: {looked}")


def _places(folder: Path, attempt: Attempt) -> Iterator[Path]:
    """Where a trial's recording may lie: one for all trials, or one of its own."""
    task_id, trial = attempt.task_id, attempt.trial
    for name in (f"{task_id}.json", f"{task_id}_{trial}.json", f"{task_id}/{trial}.json"):
        if not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise MeasurementError(f"the recording {name!r} would lie outside of {folder}")
        yield folder / name
