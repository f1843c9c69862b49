"""Tool results from a recording, for the calls that were recorded and no others."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from passgate.tasks.agents.tools.outcome import ToolOutcome
from passgate.tasks.agents.tools.side_by_side import Row, side_by_side
from passgate.tasks.agents.transcripts import read_transcript_file
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.json_values import strictly_equal
from passgate.tasks.model.task import Replay
from passgate.tasks.model.transcript import ToolCall, Transcript

Match = Literal["strict", "any_order"]
_UNEXPECTED: Final = "the recording has no such call at this place"


def recording_of(replay: Replay, suites_folder: Path) -> Transcript:
    """The recording that a task names. Raises `MeasurementError` when it cannot be read."""
    recording = read_transcript_file(suites_folder / replay.transcript)
    if recording is None:
        raise MeasurementError(f"no recorded transcript {replay.transcript} in the suites folder")
    return recording


class RecordedTools:
    """The calls of a recording: in their order (`strict`), or each once whatever the order (`any_order`).

    A call agrees with a recorded one of the same tool with the same arguments.
    """

    def __init__(self, recording: Transcript, match: Match, before: Iterable[ToolCall] = ()) -> None:
        """`before` are the calls of earlier turns, which have their results already."""
        self._left = [call for call in recording.tool_calls if not call.refused]
        self._match = match
        self._rows: list[Row] = []
        for call in before:
            if not call.refused:
                self.take(call.tool, call.arguments)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """See `Toolbox.call`. After an unexpected call no other one is answered."""
        recorded = self.take(tool, arguments)
        if recorded is None:
            return ToolOutcome(_UNEXPECTED, is_error=True)
        return ToolOutcome(recorded.result, bool(recorded.is_error))

    def take(self, tool: str, arguments: Mapping[str, Any]) -> ToolCall | None:
        """The recorded call that agrees with this one, which is used up by it; `None` for an unexpected call."""
        actual = ToolCall(tool=tool, arguments=dict(arguments))
        candidates = [] if self._differs else self._left[: 1 if self._match == "strict" else None]
        found = next((n for n, recorded in enumerate(candidates) if _agree(recorded, actual)), None)
        if found is not None:
            self._rows.append((self._left[found], actual, True))
            return self._left.pop(found)
        self._rows.append((self._taken_instead(actual), actual, False))
        return None

    def _taken_instead(self, actual: ToolCall) -> ToolCall | None:
        """The recorded call that an unexpected one is shown beside: the next one, or one of the same tool."""
        strict = self._match == "strict"
        beside = next((n for n, recorded in enumerate(self._left) if strict or recorded.tool == actual.tool), None)
        return None if beside is None else self._left.pop(beside)

    @property
    def _differs(self) -> bool:
        return any(not agree for _, _, agree in self._rows)

    @property
    def mismatch(self) -> str:
        """See `Toolbox.mismatch`."""
        first = next((number for number, (_, _, agree) in enumerate(self._rows, start=1) if not agree), None)
        return "" if first is None else f"call {first} differs ({self._match}):\n{side_by_side(self._all)}"

    @property
    def missing(self) -> str:
        """See `Toolbox.missing`."""
        if not self._left or self._differs:
            return ""
        count = "one recorded call" if len(self._left) == 1 else f"{len(self._left)} recorded calls"
        return f"{count} did not come ({self._match}):\n{side_by_side(self._all)}"

    @property
    def _all(self) -> Sequence[Row]:
        return [*self._rows, *((recorded, None, False) for recorded in self._left)]


def _agree(recorded: ToolCall, actual: ToolCall) -> bool:
    return recorded.tool == actual.tool and strictly_equal(recorded.arguments, actual.arguments)
