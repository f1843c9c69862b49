"""Recorded transcripts, played back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.conftest import an_attempt

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.replay import ReplayAgent
from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.metering.access import Unmetered
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import EndReason, Transcript

ATTEMPT = an_attempt(a_task(), trial=2)


def record(file: Path, said: str, *tools: str, **more: Any) -> Path:
    """A transcript that calls some tools and then says something."""
    calls = [{"tool": tool, "arguments": {"n": 1}, "result": "ok"} for tool in tools]
    messages = [{"role": "user", "content": "Say yes."}, {"role": "assistant", "tool_calls": calls}]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"messages": [*messages, {"role": "assistant", "content": said}], **more}))
    return file


async def play(
    target: Path | str, suites: Path, task: EvalTask | None = None, attempt: Attempt = ATTEMPT
) -> Transcript:
    """A recording needs no sandbox."""
    agent = ReplayAgent.from_spec(AgentSpec(kind=AgentKind.REPLAY, target=str(target)), suites)
    return await agent.run(task or a_task(), attempt, None, Unmetered(), seconds=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["say-yes.json", "say-yes_2.json", "say-yes/2.json"])
async def test_a_recording_of_a_folder(tmp_path: Path, suites: Path, name: str) -> None:
    record(tmp_path / "played" / name, "yes", "look", usage={"cost_usd": 0.5})
    transcript = await play(tmp_path / "played", suites)
    assert transcript.output == "yes"
    assert [call.tool for call in transcript.tool_calls] == ["look"]
    assert transcript.usage.cost_usd == 0.5
    assert transcript.end is EndReason.COMPLETED


async def test_the_first_of_several_is_played(tmp_path: Path, suites: Path) -> None:
    names = ["say-yes.json", "say-yes_2.json", "say-yes/2.json"]
    for name in reversed(names):
        record(tmp_path / "played" / name, name)
        assert (await play(tmp_path / "played", suites)).output == name


async def test_trials_have_recordings_of_their_own(tmp_path: Path, suites: Path) -> None:
    for trial in range(3):
        record(tmp_path / "played/say-yes" / f"{trial}.json", f"trial {trial}")
    for trial in range(3):
        assert (
            await play(tmp_path / "played", suites, attempt=replace(ATTEMPT, trial=trial))
        ).output == f"trial {trial}"


async def test_without_a_recording_the_places_looked_at_are_named(tmp_path: Path, suites: Path) -> None:
    with pytest.raises(MeasurementError) as caught:
        await play(tmp_path, suites)
    assert "say-yes, trial 2" in str(caught.value)
    assert "say-yes.json, say-yes_2.json, say-yes/2.json" in str(caught.value)
    assert caught.value.transient is False


@pytest.mark.parametrize("task_id", ["../outside", "a/../../outside", "/outside"])
async def test_no_recording_is_read_from_outside_of_the_folder(tmp_path: Path, suites: Path, task_id: str) -> None:
    record(tmp_path / "outside.json", "outside")
    (tmp_path / "played/a").mkdir(parents=True)
    absolute = str(tmp_path / "outside") if task_id == "/outside" else task_id
    with pytest.raises(MeasurementError, match="outside of"):
        await play(tmp_path / "played", suites, attempt=replace(ATTEMPT, task_id=absolute))


async def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path, suites: Path) -> None:
    record(tmp_path / "outside.json", "outside")
    (tmp_path / "played").mkdir()
    (tmp_path / "played/say-yes.json").symlink_to(tmp_path / "outside.json")
    with pytest.raises(MeasurementError, match="outside of"):
        await play(tmp_path / "played", suites)


@pytest.mark.parametrize("content", ["", "[]", '{"messages": 3}'])
async def test_a_recording_that_cannot_be_read_cannot_be_measured(tmp_path: Path, suites: Path, content: str) -> None:
    (tmp_path / "say-yes.json").write_text(content)
    with pytest.raises(MeasurementError):
        await play(tmp_path, suites)


@pytest.mark.parametrize("name", ["gone", "file"])
def test_a_folder_that_is_none_is_refused(tmp_path: Path, suites: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="needs a folder of transcripts"):
        ReplayAgent.from_spec(AgentSpec(kind=AgentKind.REPLAY, target=str(tmp_path / name)), suites)


def replayed(**changes: Any) -> EvalTask:
    return a_task(replay={"transcript": "recorded.json", **changes})


async def test_without_a_folder_the_tasks_own_recording_is_played(suites: Path) -> None:
    record(suites / "recorded.json", "yes", "look")
    transcript = await play("", suites, replayed())
    assert transcript.output == "yes"
    assert transcript.end is EndReason.COMPLETED


async def test_without_any_recording_there_is_nothing_to_play(suites: Path) -> None:
    with pytest.raises(MeasurementError, match=r"say-yes\.yaml has no `environment\.replay`.*replay:FOLDER"):
        await play("", suites)


@pytest.mark.parametrize(
    ("recorded", "played", "match", "end"),
    [
        (["a", "b"], ["a", "b"], "strict", EndReason.COMPLETED),
        (["a", "b"], ["b", "a"], "strict", EndReason.REPLAY_MISMATCH),
        (["a", "b"], ["b", "a"], "any_order", EndReason.COMPLETED),
        (["a", "b"], ["a"], "strict", EndReason.REPLAY_MISMATCH),
        (["a", "b"], ["a"], "any_order", EndReason.REPLAY_MISMATCH),
        (["a"], ["a", "a"], "any_order", EndReason.REPLAY_MISMATCH),
        ([], [], "strict", EndReason.COMPLETED),
    ],
)
async def test_what_is_played_is_held_against_the_recording_of_the_task(
    tmp_path: Path, suites: Path, recorded: list[str], played: list[str], match: str, end: EndReason
) -> None:
    record(suites / "recorded.json", "yes", *recorded)
    record(tmp_path / "played/say-yes.json", "yes", *played)
    transcript = await play(tmp_path / "played", suites, replayed(match=match))
    assert transcript.end is end
    assert bool(transcript.detail) is (end is EndReason.REPLAY_MISMATCH)
    assert [call.tool for call in transcript.tool_calls] == played


async def test_a_mismatch_is_shown_side_by_side(tmp_path: Path, suites: Path) -> None:
    record(suites / "recorded.json", "yes", "look", "take")
    record(tmp_path / "played/say-yes.json", "yes", "look", "drop")
    detail = (await play(tmp_path / "played", suites, replayed())).detail
    assert detail.splitlines()[1:] == [
        "        expected       actual",
        '     1  look {"n": 1}  look {"n": 1}',
        '!    2  take {"n": 1}  drop {"n": 1}',
    ]


async def test_how_a_recorded_agent_ended_is_kept(tmp_path: Path, suites: Path) -> None:
    record(suites / "recorded.json", "yes", "look")
    record(tmp_path / "played/say-yes.json", "yes", end="timed_out", detail="slow")
    transcript = await play(tmp_path / "played", suites, replayed())
    assert (transcript.end, transcript.detail) == (EndReason.TIMED_OUT, "slow")
