"""Transcripts of a journal and the digests that their trials name."""

import json
from datetime import timedelta
from typing import Any

import pytest

from passgate.tasks.commands.sign_off import recorded_trials
from passgate.tasks.errors import StorageError
from passgate.tasks.model.json_values import json_digest, trials_digest
from passgate.tasks.model.trial import TrialStatus
from tests.builders import STARTED, a_finished, a_task

TASK = a_task()


def a_line(trial: int = 0, said: str = "yes", **changes: Any) -> bytes:
    finished = a_finished(TASK, trial, said, **changes)
    digest = json_digest(finished.transcript.model_dump(mode="json"))
    kept = finished.model_copy(update={"trial": finished.trial.model_copy(update={"transcript_digest": digest})})
    return kept.model_dump_json().encode() + b"\n"


def keys(trials: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(trial["task_id"], trial["trial"]) for trial in trials]


def test_every_trial_has_the_digest_of_its_transcript() -> None:
    recorded = recorded_trials([a_line(0) + a_line(1, "Zoë \u2028\x00")])
    assert keys(recorded) == [("say-yes", 0), ("say-yes", 1)]
    assert len({trial["transcript_digest"] for trial in recorded}) == 2
    assert recorded_trials([a_line(0, "no") + a_line(0)]) == recorded_trials([a_line(0)])
    assert recorded_trials([a_line(0) + a_line(1)[:-5]]) == recorded_trials([a_line(0)])
    assert recorded_trials([b""]) == []


def test_fields_of_a_later_version_do_no_harm() -> None:
    finished = json.loads(a_line())
    finished["trial"]["mood"] = "good"
    finished["transcript"]["mood"] = "good"
    finished["trial"]["transcript_digest"] = json_digest(finished["transcript"])
    assert keys(recorded_trials([json.dumps(finished).encode() + b"\n"])) == [("say-yes", 0)]


def test_another_transcript_is_noticed_unless_it_is_kept_with_an_earlier_run() -> None:
    with pytest.raises(StorageError, match="line 2: the transcript of say-yes, trial 1, is not the one"):
        recorded_trials([a_line(0) + a_line(1).replace(b'"output":"yes"', b'"output":"yea"')])
    line = a_line(reused_from="run-1").replace(b'"output":"yes"', b'"output":""')
    assert keys(recorded_trials([line])) == [("say-yes", 0)]


def test_of_a_trial_that_two_parts_hold_the_measured_and_then_the_later_one_counts() -> None:
    measured, later = a_line(0), a_line(0, "no", started_at=STARTED + timedelta(days=1))
    error = a_line(0, "oops", status=TrialStatus.ERROR, started_at=STARTED + timedelta(days=2))
    assert recorded_trials([measured, error]) == recorded_trials([error, measured]) == recorded_trials([measured])
    assert recorded_trials([measured, later]) == recorded_trials([later, measured]) == recorded_trials([later])


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"{}", b'"text"', b"\xff", b'{"trial": [], "transcript": {}}', b"[" * 100_000]
)
def test_a_line_of_something_else_is_noticed(line: bytes) -> None:
    with pytest.raises(StorageError, match="line 1 is none of a journal's"):
        recorded_trials([line + b"\n"])


def test_the_digest_of_trials_is_of_all_that_was_judged_in_any_order() -> None:
    trials = recorded_trials([a_line(0) + a_line(1) + a_line(2, "no")])
    assert trials_digest(trials) == trials_digest(trials[::-1])
    assert trials_digest(trials) != trials_digest(trials[:2])
    finished = a_finished(TASK, 0, "yes")
    (trial,) = recorded_trials([a_line(0)])
    for name, value in (("status", "failed"), ("score", 0.25), ("model", "another")):
        assert name in finished.trial.model_dump()
        assert trials_digest([trial | {name: value}]) != trials_digest([trial])
