"""Recorded transcripts as an agent: `replay:FOLDER`, or `replay` for the recordings of the tasks themselves."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from passgate.tasks.agents.interface import Agent, AgentSandbox, Attempt
from passgate.tasks.agents.tools import RecordedTools, read_recording
from passgate.tasks.agents.transcripts import read_transcript_file
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.metering.access import ModelAccess
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript

RECORDINGS: Final = ("{task_id}.json", "{task_id}_{trial}.json", "{task_id}/{trial}.json")
"""Where the recordings of a trial may lie in a folder of them: one for all trials, or one of its own."""


@dataclass(frozen=True)
class ReplayAgent(Agent):
    """Says and does what a recorded transcript holds, in one turn, the user's part included. Nothing is run."""

    has_conversations = False
    folder: Path | None
    suites_folder: Path

    @classmethod
    def from_spec(cls, spec: AgentSpec, suites_folder: Path) -> Self:
        """Return the agent. Raises `UsageError` if the folder does not exist."""
        target = spec.target
        if target and not Path(target).is_dir():
            raise UsageError(f"the agent replay:{target} needs a folder of transcripts, and {target} is not a folder")
        return cls(Path(target).absolute() if target else None, suites_folder)

    async def run(
        self, task: EvalTask, attempt: Attempt, sandbox: AgentSandbox, access: ModelAccess, *, seconds: float
    ) -> Transcript:
        """Play the recording. Raises `MeasurementError` if there is none that can be played."""
        if self.folder is not None:
            played = _from_folder(self.folder, attempt)
        elif task.replay is not None:
            played = read_recording(task.replay, self.suites_folder)
        else:
            raise MeasurementError(
                f"{task.file} has no `environment.replay`, so there is nothing to play: "
                "name a folder of transcripts with replay:FOLDER"
            )
        if task.replay is None:
            return played
        held = RecordedTools(read_recording(task.replay, self.suites_folder), task.replay.match, played.tool_calls)
        difference = held.mismatch or held.missing
        if not difference or played.end is not EndReason.COMPLETED:
            return played
        return played.model_copy(update={"end": EndReason.REPLAY_MISMATCH, "detail": difference})


def _from_folder(folder: Path, attempt: Attempt) -> Transcript:
    task_id, trial = attempt.task_id, attempt.trial
    names = [name.format(task_id=task_id, trial=trial) for name in RECORDINGS]
    # The id of a task comes from a file that a change may bring.
    for name in names:
        if not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise MeasurementError(f"the recording {name!r} would lie outside of {folder}")
    transcript = next(filter(None, (read_transcript_file(folder / name) for name in names)), None)
    if transcript is None:
        raise MeasurementError(f"no transcript of {task_id}, trial {trial}, in {folder}: {', '.join(names)}")
    return transcript
