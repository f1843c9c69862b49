"""Recorded transcripts, played back."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.conftest import an_attempt

from passgate.tasks.agents.replay import ReplayAgent
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.metering.access import Unmetered
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript


def record(file: Path, said: str, *tools: str, **more: Any) -> None:
    """A transcript that calls some tools and then says something."""
    calls = [{"tool": tool, "arguments": {"n": 1}, "result": "ok"} for tool in tools]
    messages = [{"role": "user", "content": "Say yes."}, {"role": "assistant", "tool_calls": calls}]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"messages": [*messages, {"role": "assistant", "content": said}], **more}))


@pytest.fixture
def play(tmp_path: Path, suites: Path):
    """Play the recordings of a folder, by default `played`. That needs no sandbox."""

    async def _play(task: EvalTask | None = None, *, folder: str = "played", **changes: Any) -> Transcript:
        target = str(tmp_path / folder) if folder else ""
        agent = ReplayAgent.from_spec(AgentSpec(kind=AgentKind.REPLAY, target=target), suites)
        attempt = an_attempt(task or a_task(), **{"trial": 2, **changes})
        return await agent.run(task or a_task(), attempt, None, Unmetered(), seconds=240)  # type: ignore[arg-type]

    return _play


NAMES = ["say-yes.json", "say-yes_2.json", "say-yes/2.json"]


async def test_the_first_of_the_places_in_a_folder_is_played(play, tmp_path: Path) -> None:
    for name in reversed(NAMES):
        record(tmp_path / "played" / name, name, "look", usage={"cost_usd": 0.5})
        transcript = await play()
        assert (transcript.output, transcript.usage.cost_usd, transcript.end) == (name, 0.5, EndReason.COMPLETED)
        assert [call.tool for call in transcript.tool_calls] == ["look"]


async def test_trials_have_recordings_of_their_own(play, tmp_path: Path) -> None:
    for trial in range(3):
        record(tmp_path / "played/say-yes" / f"{trial}.json", f"trial {trial}")
    assert [(await play(trial=trial)).output for trial in range(3)] == ["trial 0", "trial 1", "trial 2"]


async def test_without_a_recording_the_places_looked_at_are_named(play) -> None:
    with pytest.raises(MeasurementError) as caught:
        await play(folder=".")
    assert "say-yes, trial 2" in str(caught.value)
    assert ", ".join(NAMES) in str(caught.value)
    assert caught.value.transient is False


@pytest.mark.parametrize("task_id", ["../outside", "a/../../outside", "/outside", "link"])
async def test_no_recording_is_read_from_outside_of_the_folder(play, tmp_path: Path, task_id: str) -> None:
    record(tmp_path / "outside.json", "outside")
    (tmp_path / "played/a").mkdir(parents=True)
    (tmp_path / "played/link.json").symlink_to(tmp_path / "outside.json")
    with pytest.raises(MeasurementError, match="outside of"):
        await play(task_id=f"{tmp_path}/outside" if task_id == "/outside" else task_id)


@pytest.mark.parametrize("content", ["", "[]", '{"messages": 3}'])
async def test_a_recording_that_cannot_be_read_cannot_be_measured(play, tmp_path: Path, content: str) -> None:
    (tmp_path / "say-yes.json").write_text(content)
    with pytest.raises(MeasurementError, match="transcript"):
        await play(folder=".")


@pytest.mark.parametrize("name", ["gone", "file"])
async def test_a_folder_that_is_none_is_refused(play, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="needs a folder of transcripts"):
        await play(folder=name)


def replayed(**changes: Any) -> EvalTask:
    return a_task(replay={"transcript": "recorded.json", **changes})


async def test_without_a_folder_the_tasks_own_recording_is_played(play, suites: Path) -> None:
    record(suites / "recorded.json", "yes", "look")
    transcript = await play(replayed(), folder="")
    assert (transcript.output, transcript.end) == ("yes", EndReason.COMPLETED)


async def test_without_any_recording_there_is_nothing_to_play(play) -> None:
    with pytest.raises(MeasurementError, match=r"say-yes\.yaml has no `environment\.replay`.*replay:FOLDER"):
        await play(folder="")


@pytest.mark.parametrize(
    ("recorded", "played", "match", "end"),
    [
        (["a", "b"], ["a", "b"], "strict", EndReason.COMPLETED),
        (["a", "b"], ["b", "a"], "strict", EndReason.REPLAY_MISMATCH),
        (["a", "b"], ["b", "a"], "any_order", EndReason.COMPLETED),
        (["a", "b"], ["a"], "strict", EndReason.REPLAY_MISMATCH),
    ],
)
async def test_what_is_played_is_held_against_the_recording(
    play, tmp_path: Path, suites: Path, recorded: list[str], played: list[str], match: str, end: EndReason
) -> None:
    record(suites / "recorded.json", "yes", *recorded)
    record(tmp_path / "played/say-yes.json", "yes", *played)
    transcript = await play(replayed(match=match))
    assert transcript.end is end
    assert bool(transcript.detail) is (end is EndReason.REPLAY_MISMATCH)
    assert [call.tool for call in transcript.tool_calls] == played


async def test_how_a_recorded_agent_ended_is_kept(play, tmp_path: Path, suites: Path) -> None:
    record(suites / "recorded.json", "yes", "look")
    record(tmp_path / "played/say-yes.json", "yes", end="timed_out", detail="slow")
    transcript = await play(replayed())
    assert (transcript.end, transcript.detail) == (EndReason.TIMED_OUT, "slow")
