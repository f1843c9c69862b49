"""Finished trials become part of the history."""

from pathlib import Path

import pandas as pd
import pytest

from passgate.tasks.history.dataset import History
from passgate.tasks.history.masking import run_masker
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import Suite
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.record import record
from tests.builders import SHIPPED, a_finished, a_plan, a_run_id, a_task

TASK, ATTACK = a_task(), a_task(task_id="attack", suite=Suite.ADVERSARIAL)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return a_plan(TASK, ATTACK, request=RunRequest(history=str(tmp_path)))


def test_every_trial_is_a_row_and_every_transcript_is_kept(plan: Plan, tmp_path: Path) -> None:
    finished = [a_finished(task, trial) for task in (TASK, ATTACK) for trial in range(3)]
    assert record(plan, finished).location == str(tmp_path)
    trials = History(str(tmp_path)).trials().to_pandas()
    assert list(trials["run_id"]) == [plan.run_id] * 6
    transcripts = pd.read_parquet(tmp_path / "transcripts").set_index("transcript_digest")["transcript"]
    for digest in trials["transcript_digest"]:
        assert Transcript.model_validate_json(transcripts[digest]).output == "yes"


def test_a_run_that_is_recorded_again_takes_its_own_place(plan: Plan, tmp_path: Path) -> None:
    record(plan, [a_finished(TASK, 0, status=TrialStatus.ERROR)])
    record(plan, [a_finished(TASK, trial, transcript_digest="same") for trial in range(3)])
    assert list(History(str(tmp_path)).trials().to_pandas()["status"]) == ["passed"] * 3
    assert len(pd.read_parquet(tmp_path / "transcripts")) == 1


def test_trials_of_earlier_runs_are_not_stored_again(plan: Plan, tmp_path: Path) -> None:
    reused = [a_finished(ATTACK, trial, reused_from="earlier") for trial in range(3)]
    record(plan, [*reused, a_finished(TASK, 0)])
    assert list(pd.read_parquet(tmp_path / "transcripts")["transcript_digest"]) == ["say-yes-0"]
    record(plan.model_copy(update={"run_id": a_run_id("20260201")}), reused)
    assert list(History(str(tmp_path)).trials().to_pandas()["task_id"]) == ["say-yes"]


def test_where_the_history_is_and_which_secrets_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert a_plan().history_location == SHIPPED.history
    assert a_plan(request=RunRequest(history="s3://bucket/x")).history_location == "s3://bucket/x"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-123456")
    assert run_masker(a_plan()).text("key sk-123456") == "key ***"
