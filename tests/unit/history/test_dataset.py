"""The history: typed rows that any Parquet reader can read, whole files or none."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.columns import SCHEMA_VERSION, arrow_schema, row, table_of
from passgate.tasks.history.dataset import History
from passgate.tasks.model.task import Suite
from passgate.tasks.model.trial import TrialMetrics, TrialStatus
from tests.builders import STARTED, a_grade, a_plan, a_task, a_trial, a_violation

GOLDEN, ADVERSARIAL = a_task(), a_task(task_id="attack", suite=Suite.ADVERSARIAL)
PLAN = a_plan(GOLDEN, ADVERSARIAL)
DAY, LATER = "2026-01-31", "2026-02-01"
GOLDEN_FILE = Path(f"trials/suite=golden/day={DAY}/run-1.parquet")


def rows(*statuses: TrialStatus, **changes: Any) -> list[dict[str, Any]]:
    """One row per status and suite."""
    return [
        row(a_trial(task, number, status, **changes), PLAN)
        for task in (GOLDEN, ADVERSARIAL)
        for number, status in enumerate(statuses)
    ]


def write(history: History, run_id: str = PLAN.run_id, *statuses: TrialStatus, day: str = DAY, **changes: Any) -> None:
    every = [one | {"run_id": run_id, "day": day} for one in rows(*(statuses or [TrialStatus.PASSED]), **changes)]
    history.write_run(run_id, day, table_of(every), {f"digest-{run_id}": '{"messages": []}'})


@pytest.fixture(params=["folder", "file URL", "fsspec"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> History:
    locations = {
        "folder": str(tmp_path / "history"),
        "file URL": (tmp_path / "history").as_uri(),
        "fsspec": f"memory://{tmp_path.name}/history",
    }
    return History(locations[request.param])


def test_what_is_written_reads_back_whole_or_by_rows_and_columns(history: History) -> None:
    write(history, "run-1", TrialStatus.PASSED, TrialStatus.FAILED)
    write(history, "run-2", TrialStatus.FAILED)
    trials = history.trials()
    assert sorted(trials["run_id"]) == ["run-1"] * 4 + ["run-2"] * 2
    told = [set(trials[name]) for name in ("suite", "day", "status")]
    assert told == [{"golden", "adversarial"}, {DAY}, {"passed", "failed"}]
    assert set(history.trials({"run_id": "run-2"})["status"]) == {"failed"}
    assert len(history.trials({"run_id": "run-2", "suite": "golden"})) == 1
    assert len(history.trials({"run_id": "run-3"})) == 0
    some = history.trials({"agent": "cli:my-agent"}, ["run_id", "suite", "day"])
    assert (set(some.columns), len(some)) == ({"run_id", "suite", "day", "schema_version"}, 6)


def test_a_history_without_trials_is_empty(history: History, tmp_path: Path) -> None:
    history.refuse_unwritable(DAY, ["golden", "adversarial"])
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
    trials = history.trials()
    assert (len(trials), list(trials.columns)) == (0, arrow_schema().names)
    assert len(history.trials({"agent": "x"})) == 0
    assert {"run_id", "suite", "day"} <= set(history.trials(columns=["run_id", "suite", "day"]).columns)
    history.write_run("run-1", DAY, table_of([]), {})
    assert len(history.trials()) == 0


def test_a_run_that_is_written_again_takes_its_own_place(history: History) -> None:
    write(history, "run-1", TrialStatus.ERROR, TrialStatus.ERROR)
    write(history, "run-2")
    write(history, "run-1", TrialStatus.PASSED)
    first = history.trials({"run_id": "run-1"})
    assert list(first["status"]) == ["passed", "passed"]
    assert len(history.trials()) == 4


def test_every_column_has_its_type(local: History) -> None:
    violations = (a_violation(), a_violation(message="again"))
    grades = (a_grade(votes=(0.5, 1.0), violations=violations), a_grade(name="judge", error="no judge"))
    write(local, grades=grades, metrics=TrialMetrics(tokens_in=3, cost=0.25, wall_time_seconds=1.5))
    trials = local.trials({"suite": "golden"})
    one = trials.iloc[0]
    assert one["started_at"] == pd.Timestamp(STARTED)
    assert str(trials["started_at"].dtype).endswith("UTC]")
    assert (trials["trial"].dtype, trials["git_dirty"].dtype) == (np.int64, np.bool_)
    assert (one["cost"], one["tokens_in"], one["wall_time_seconds"]) == (0.25, 3, 1.5)
    assert pd.isna(one["tokens_out"])
    assert [{**grade, "votes": list(grade["votes"])} for grade in one["grades"]] == [
        {"name": "answer", "type": "output_check", "score": 1.0, "passed": True, "error": "", "votes": [0.5, 1.0]},
        {"name": "judge", "type": "output_check", "score": None, "passed": False, "error": "no judge", "votes": []},
    ]
    assert list(one["violations"]) == ["safety_violation: it leaked", "safety_violation: again"]


def test_there_is_one_file_per_run_and_suite_which_pandas_reads_without_us(local: History) -> None:
    write(local, "run-1", TrialStatus.PASSED, TrialStatus.FAILED)
    write(local, "run-2", day=LATER)
    assert sorted(str(file) for file in Path().rglob("*") if file.is_file()) == [
        f"summaries/{DAY}/run-1.parquet",
        f"summaries/{LATER}/run-2.parquet",
        f"transcripts/day={DAY}/run-1.parquet",
        f"transcripts/day={LATER}/run-2.parquet",
        f"trials/suite=adversarial/day={DAY}/run-1.parquet",
        f"trials/suite=adversarial/day={LATER}/run-2.parquet",
        f"trials/suite=golden/day={DAY}/run-1.parquet",
        f"trials/suite=golden/day={LATER}/run-2.parquet",
    ]
    trials = pd.read_parquet("trials")
    assert set(trials.columns) == set(arrow_schema().names)
    assert (set(trials["suite"]), list(trials["status"]).count("failed")) == ({"golden", "adversarial"}, 2)
    stored = pd.read_parquet("transcripts")
    assert dict(zip(stored["transcript_digest"], stored["transcript"], strict=True)) == {
        "digest-run-1": '{"messages": []}',
        "digest-run-2": '{"messages": []}',
    }
    assert set(local.trials({"day": LATER})["run_id"]) == {"run-2"}


def test_a_write_that_ends_half_way_is_not_seen(local: History, monkeypatch: pytest.MonkeyPatch) -> None:
    write(local, "run-1")
    real = pq.write_table

    def runs_out_of_disk(table: pa.Table, where: str, **options: Any) -> None:
        real(table, where, **options)
        os.truncate(where, Path(where).stat().st_size // 2)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq, "write_table", runs_out_of_disk)
    with pytest.raises(StorageError, match=r"cannot write the history .*No space left"):
        write(local, "run-2")
    assert len(local.trials()) == 2
    assert len(pd.read_parquet("transcripts")) == 1


def put_other_columns(file: Path) -> None:
    pq.write_table(pa.table({"name": ["x"], "value": [1]}), file)


def put_other_types(file: Path) -> None:
    table = pq.ParquetFile(file).read()
    pq.write_table(table.set_column(0, "schema_version", pa.array([["x"]] * len(table))), file)


def put_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def put_another_value(file: Path) -> None:
    column = pq.ParquetFile(file).metadata.row_group(0).column(1)
    content = bytearray(file.read_bytes())
    content[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 1
    file.write_bytes(content)


BROKEN = {
    "empty": lambda file: file.write_bytes(b""),
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:-10]),
    "text": lambda file: file.write_text("PAR1 and no more"),
    "noise": lambda file: file.write_bytes(file.read_bytes()[:4] + b"\xff" * 60 + file.read_bytes()[64:]),
    "other columns": put_other_columns,
    "other types": put_other_types,
    "another value": put_another_value,
    "a folder": put_a_folder,
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_skipped(local: History, tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture) -> None:
    write(local, "run-2")
    write(local, "run-1")
    BROKEN[what](GOLDEN_FILE)
    assert len(local.trials({"suite": "adversarial"})) == 2
    assert caplog.messages == [] or what == "a folder", "a file of another suite is not opened"
    caplog.clear()
    trials = local.trials()
    assert sorted(zip(trials["suite"], trials["run_id"], strict=True)) == [
        ("adversarial", "run-1"),
        ("adversarial", "run-2"),
        ("golden", "run-2"),
    ]
    assert len(local.trials({"agent": "cli:my-agent"}, ["run_id"])) == 3
    (first, _) = caplog.messages
    assert first.startswith(f"the history {tmp_path}: 1 file is skipped: suite=golden/day={DAY}/run-1.parquet (")
    assert first.endswith("); restore or remove what is skipped")
    assert first.count(str(tmp_path)) == 1
    assert what != "another value" or "CRC checksum verification failed" in first


def test_stray_files_are_skipped_and_counted(local: History, caplog: pytest.LogCaptureFixture) -> None:
    write(local, "run-1")
    day, whole = GOLDEN_FILE.parent, GOLDEN_FILE.read_bytes()
    for name in (".DS_Store", "_metadata", ".run-2.parquet.unfinished"):
        (day / name).write_bytes(whole[: len(whole) // 2])
    assert len(pd.read_parquet("trials")) == 2
    for name in ("README.md", "copy.parquet", "suite=golden/copy.parquet", f"suite=golden/day={DAY}/notes.txt"):
        (Path("trials") / name).write_bytes(whole)
    assert len(local.trials()) == 2
    (told,) = caplog.messages
    assert "4 files are skipped" in told
    assert "1 more" in told


def test_a_file_that_vanishes_while_it_is_read_is_skipped(
    local: History, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(local, "run-1")
    write(local, "run-2")
    real = ds.FileSystemDataset.to_table

    class Vanishing(ds.FileSystemDataset):
        def to_table(self, *arguments: Any, **options: Any) -> pa.Table:
            GOLDEN_FILE.unlink(missing_ok=True)
            return real(self, *arguments, **options)

    monkeypatch.setattr(ds, "FileSystemDataset", Vanishing)
    assert len(local.trials()) == 3
    assert "run-1.parquet" in caplog.text


@pytest.mark.parametrize("place", ["", "trials", "transcripts", "trials/suite=golden"])
def test_a_history_that_cannot_take_a_run_is_found_before_it(tmp_path: Path, place: str) -> None:
    location = tmp_path / "history"
    file = location / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("in the way")
    with pytest.raises(UsageError, match=r"the history .* cannot be written: .*--history"):
        History(str(location)).refuse_unwritable(DAY, ["golden"])


def test_a_newer_history_is_refused(local: History) -> None:
    every = [one | {"schema_version": SCHEMA_VERSION + 1} for one in rows(TrialStatus.PASSED)]
    local.write_run("run-1", DAY, table_of(every), {})
    with pytest.raises(StorageError, match="written by a newer passgate"):
        local.trials()


OF_VERSION_4 = ("agent_digest", "policy_digest", "confirming")


@pytest.mark.parametrize(
    ("version", "lacking"),
    [
        (1, ("model", "tokens_cached", "judge_cost", *OF_VERSION_4)),
        (3, OF_VERSION_4),
        (SCHEMA_VERSION, ("loop_rate", "isolation")),
    ],
)
def test_what_an_older_history_lacks_is_empty(local: History, version: int, lacking: tuple[str, ...]) -> None:
    write(local, "run-1", grades=(a_grade(),))
    rows_then = pq.ParquetFile(GOLDEN_FILE).read().to_pylist()
    for one in rows_then:
        one |= {"schema_version": version, "added": "x"}
        for name in lacking:
            del one[name]
        for grade in one["grades"]:
            if version == 1:
                del grade["votes"]
    pq.write_table(pa.Table.from_pylist(rows_then), GOLDEN_FILE)
    assert list(local.trials().columns) == arrow_schema().names
    one = local.trials({"suite": "golden"}).iloc[0]
    assert (one["run_id"], one["grades"][0]["name"]) == ("run-1", "answer")
    assert all(pd.isna(one[name]) for name in lacking)
    assert len(local.trials({"suite": "golden", "agent_digest": "a"})) == 0


def test_a_place_that_cannot_be_written_or_opened_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write the history"):
        write(History(str(tmp_path / "file")))
    with pytest.raises(StorageError, match="cannot be opened"):
        History("gopher://somewhere")


def test_a_relative_folder_is_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(History("kept/here"))
    assert (tmp_path / "kept/here/trials").is_dir()
