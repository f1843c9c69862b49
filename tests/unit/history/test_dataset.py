"""The history: typed rows that any Parquet reader can read, whole files or none."""

import errno
import os
from datetime import UTC, datetime
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
DAY = "2026-01-31"


def rows(*statuses: TrialStatus, **changes: Any) -> list[dict[str, Any]]:
    """One row per status and suite."""
    return [
        row(a_trial(task, number, status, **changes), PLAN)
        for task in (GOLDEN, ADVERSARIAL)
        for number, status in enumerate(statuses)
    ]


def write(history: History, run_id: str = PLAN.run_id, *statuses: TrialStatus, **changes: Any) -> None:
    every = [one | {"run_id": run_id} for one in rows(*(statuses or [TrialStatus.PASSED]), **changes)]
    history.write_run(run_id, DAY, table_of(every), {f"digest-{run_id}": '{"messages": []}'})


@pytest.fixture(params=["folder", "file URL", "fsspec"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> History:
    locations = {
        "folder": str(tmp_path / "history"),
        "file URL": (tmp_path / "history").as_uri(),
        "fsspec": f"memory://{tmp_path.name}/history",
    }
    return History(locations[request.param])


def test_what_is_written_reads_back(history: History) -> None:
    write(history, "run-1", TrialStatus.PASSED, TrialStatus.FAILED)
    write(history, "run-2")
    trials = history.trials()
    assert len(trials) == 6
    assert sorted(trials["run_id"].unique()) == ["run-1", "run-2"]
    assert set(trials["suite"]) == {"golden", "adversarial"}
    assert set(trials["day"]) == {DAY}
    assert set(trials["status"]) == {"passed", "failed"}


def test_a_history_that_does_not_exist_yet_is_empty(history: History) -> None:
    trials = history.trials()
    assert len(trials) == 0
    assert list(trials.columns) == arrow_schema().names
    assert len(history.trials({"agent": "x"})) == 0


def test_only_the_rows_that_are_asked_for(history: History) -> None:
    write(history, "run-1")
    write(history, "run-2", TrialStatus.FAILED)
    assert set(history.trials({"run_id": "run-2"})["status"]) == {"failed"}
    assert len(history.trials({"run_id": "run-2", "suite": "golden"})) == 1
    assert len(history.trials({"run_id": "run-3"})) == 0


def test_only_the_columns_that_are_asked_for(history: History) -> None:
    columns = ["run_id", "suite", "day"]
    assert set(columns) <= set(history.trials(columns=columns).columns)
    write(history, "run-1")
    trials = history.trials({"agent": "cli:my-agent"}, columns)
    assert set(trials.columns) == {*columns, "schema_version"}
    assert len(trials) == 2


def test_a_run_that_is_written_again_takes_its_own_place(history: History) -> None:
    write(history, "run-1", TrialStatus.ERROR, TrialStatus.ERROR)
    write(history, "run-2")
    write(history, "run-1", TrialStatus.PASSED)
    first = history.trials({"run_id": "run-1"})
    assert list(first["status"]) == ["passed", "passed"]
    assert len(history.trials()) == 4


def test_every_column_has_its_type(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    metrics = TrialMetrics(tokens_in=3, cost=0.25, wall_time_seconds=1.5)
    grades = (a_grade(votes=(0.5, 1.0)), a_grade(name="judge", error="no judge"))
    write(history, grades=grades, metrics=metrics)
    trials = history.trials({"suite": "golden"})
    one = trials.iloc[0]
    assert one["started_at"] == pd.Timestamp(STARTED)
    assert str(trials["started_at"].dtype).endswith("UTC]")
    assert trials["trial"].dtype == np.int64
    assert trials["git_dirty"].dtype == np.bool_
    assert (one["cost"], one["tokens_in"], one["wall_time_seconds"]) == (0.25, 3, 1.5)
    assert pd.isna(one["tokens_out"])
    assert [{**grade, "votes": list(grade["votes"])} for grade in one["grades"]] == [
        {"name": "answer", "type": "output_check", "score": 1.0, "passed": True, "error": "", "votes": [0.5, 1.0]},
        {"name": "judge", "type": "output_check", "score": None, "passed": False, "error": "no judge", "votes": []},
    ]


def test_violations_are_written_out(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    write(history, grades=(a_grade(passed=False, violations=(a_violation(), a_violation(message="again"))),))
    assert list(history.trials().iloc[0]["violations"]) == ["safety_violation: it leaked", "safety_violation: again"]


def test_pandas_reads_the_folder_without_us(tmp_path: Path) -> None:
    write(History(str(tmp_path)), "run-1", TrialStatus.PASSED, TrialStatus.FAILED)
    trials = pd.read_parquet(tmp_path / "trials")
    assert set(trials.columns) == set(arrow_schema().names)
    assert set(trials["suite"]) == {"golden", "adversarial"}
    assert (trials["status"] == "passed").mean() == 0.5


def test_there_is_one_file_per_run_and_suite(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    write(history, "run-1")
    write(history, "run-2")
    assert sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()) == [
        f"summaries/{DAY}/run-1.parquet",
        f"summaries/{DAY}/run-2.parquet",
        f"transcripts/day={DAY}/run-1.parquet",
        f"transcripts/day={DAY}/run-2.parquet",
        f"trials/suite=adversarial/day={DAY}/run-1.parquet",
        f"trials/suite=adversarial/day={DAY}/run-2.parquet",
        f"trials/suite=golden/day={DAY}/run-1.parquet",
        f"trials/suite=golden/day={DAY}/run-2.parquet",
    ]


def test_a_transcript_is_stored_by_its_digest(tmp_path: Path) -> None:
    write(History(str(tmp_path)), "run-1")
    stored = pd.read_parquet(tmp_path / "transcripts")
    assert list(stored["transcript_digest"]) == ["digest-run-1"]
    assert list(stored["transcript"]) == ['{"messages": []}']


def test_a_half_written_file_is_not_seen(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    write(history, "run-1")
    folder = tmp_path / f"trials/suite=golden/day={DAY}"
    content = (folder / "run-1.parquet").read_bytes()
    (folder / ".run-2.parquet.unfinished").write_bytes(content[: len(content) // 2])
    assert len(history.trials()) == 2
    assert len(pd.read_parquet(tmp_path / "trials")) == 2


def test_a_write_that_ends_half_way_is_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(str(tmp_path))
    write(history, "run-1")
    real = pq.write_table

    def runs_out_of_disk(table: pa.Table, where: str, **options: Any) -> None:
        real(table, where, **options)
        content = Path(where).read_bytes()
        Path(where).write_bytes(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq, "write_table", runs_out_of_disk)
    with pytest.raises(StorageError, match=r"cannot write the history .*No space left"):
        write(history, "run-2")
    assert len(history.trials()) == 2
    assert len(pd.read_parquet(tmp_path / "transcripts")) == 1


def put_noise(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4:64] = b"\xff" * 60
    file.write_bytes(content)


def put_other_columns(file: Path) -> None:
    pq.write_table(pa.table({"name": ["x"], "value": [1]}), file)


def put_other_types(file: Path) -> None:
    table = pq.ParquetFile(file).read()
    pq.write_table(table.set_column(0, "schema_version", pa.array([["x"]] * len(table))), file)


def put_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


BROKEN = {
    "empty": lambda file: file.write_bytes(b""),
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:-10]),
    "text": lambda file: file.write_text("PAR1 and no more"),
    "noise": put_noise,
    "other columns": put_other_columns,
    "other types": put_other_types,
    "a folder": put_a_folder,
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_skipped_and_told(tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture) -> None:
    history = History(str(tmp_path))
    write(history, "run-1")
    write(history, "run-2")
    BROKEN[what](tmp_path / f"trials/suite=golden/day={DAY}/run-2.parquet")
    trials = history.trials()
    assert sorted(zip(trials["suite"], trials["run_id"], strict=True)) == [
        ("adversarial", "run-1"),
        ("adversarial", "run-2"),
        ("golden", "run-1"),
    ]
    assert len(history.trials({"agent": "cli:my-agent"}, ["run_id"])) == 3
    (first, _) = caplog.messages
    assert first.startswith(f"the history {tmp_path}: 1 file is skipped: suite=golden/day={DAY}/run-2.parquet (")
    assert first.endswith("); restore or remove what is skipped")
    assert first.count(str(tmp_path)) == 1


def test_a_file_with_a_changed_value_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    history = History(str(tmp_path))
    write(history, "run-1")
    file = tmp_path / f"trials/suite=golden/day={DAY}/run-1.parquet"
    column = pq.ParquetFile(file).metadata.row_group(0).column(1)
    last_byte = column.dictionary_page_offset + column.total_compressed_size - 1
    content = bytearray(file.read_bytes())
    content[last_byte] ^= 1
    file.write_bytes(content)
    assert len(history.trials()) == 1
    assert "CRC checksum verification failed" in caplog.text


def test_stray_files_are_skipped_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    history = History(str(tmp_path))
    write(history, "run-1")
    day = tmp_path / f"trials/suite=golden/day={DAY}"
    whole = (day / "run-1.parquet").read_bytes()
    for name in ("README.md", "copy.parquet", "suite=golden/copy.parquet", f"suite=golden/day={DAY}/notes.txt"):
        (tmp_path / "trials" / name).write_bytes(whole)
    for name in (".DS_Store", "_metadata"):
        (day / name).write_bytes(b"hidden from all readers of data sets")
    assert len(history.trials()) == 2
    (told,) = caplog.messages
    assert "4 files are skipped" in told
    assert "1 more" in told


def test_a_file_that_vanishes_while_it_is_read_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(str(tmp_path))
    write(history, "run-1")
    write(history, "run-2")
    real = ds.FileSystemDataset.to_table

    class Vanishing(ds.FileSystemDataset):
        def to_table(self, *arguments: Any, **options: Any) -> pa.Table:
            (tmp_path / f"trials/suite=golden/day={DAY}/run-2.parquet").unlink(missing_ok=True)
            return real(self, *arguments, **options)

    monkeypatch.setattr(ds, "FileSystemDataset", Vanishing)
    assert len(history.trials()) == 3
    assert "run-2.parquet" in caplog.text


def test_a_file_of_another_suite_is_not_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    history = History(str(tmp_path))
    write(history, "run-1")
    (tmp_path / f"trials/suite=adversarial/day={DAY}/run-1.parquet").write_bytes(b"")
    assert len(history.trials({"suite": "golden"})) == 1
    assert caplog.messages == []


@pytest.mark.parametrize("place", ["", "trials", "transcripts", "trials/suite=golden"])
def test_a_history_that_cannot_take_a_run_is_found_before_it(tmp_path: Path, place: str) -> None:
    location = tmp_path / "history"
    file = location / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("in the way")
    with pytest.raises(UsageError, match=r"the history .* cannot be written: .*--history"):
        History(str(location)).refuse_unwritable(DAY, ["golden"])


def test_the_look_whether_a_history_can_be_written_leaves_no_file(history: History, tmp_path: Path) -> None:
    history.refuse_unwritable(DAY, ["golden", "adversarial"])
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
    assert len(history.trials()) == 0


def test_a_newer_history_is_refused(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    every = [one | {"schema_version": SCHEMA_VERSION + 1} for one in rows(TrialStatus.PASSED)]
    history.write_run("run-1", DAY, table_of(every), {})
    with pytest.raises(StorageError, match="written by a newer passgate"):
        history.trials()


def test_a_column_that_an_older_history_lacks_is_empty(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    write(history, "run-1")
    file = tmp_path / f"trials/suite=golden/day={DAY}/run-1.parquet"
    table = pq.ParquetFile(file).read()
    pq.write_table(table.drop_columns(["loop_rate", "isolation"]), file)
    trials = history.trials({"suite": "golden"})
    assert list(trials["isolation"].isna()) == [True]
    assert list(trials["run_id"]) == ["run-1"]


OF_VERSION_4 = ("agent_digest", "policy_digest", "confirming")


@pytest.mark.parametrize(
    ("version", "lacking"),
    [(1, ("model", "tokens_cached", "judge_cost", *OF_VERSION_4)), (3, OF_VERSION_4)],
)
def test_a_history_of_an_older_version_is_read(tmp_path: Path, version: int, lacking: tuple[str, ...]) -> None:
    history = History(str(tmp_path))
    write(history, "run-1", grades=(a_grade(),))
    file = tmp_path / f"trials/suite=golden/day={DAY}/run-1.parquet"
    rows_then = pq.ParquetFile(file).read().to_pylist()
    for one in rows_then:
        one["schema_version"] = version
        for name in lacking:
            del one[name]
        for grade in one["grades"]:
            if version == 1:
                del grade["votes"]
    pq.write_table(pa.Table.from_pylist(rows_then), file)
    one = history.trials({"suite": "golden"}).iloc[0]
    assert one["grades"][0]["name"] == "answer"
    assert all(pd.isna(one[name]) for name in lacking)
    assert len(history.trials({"suite": "golden", "agent_digest": "a"})) == 0


def test_a_column_that_we_do_not_know_is_left_alone(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    write(history, "run-1")
    file = tmp_path / f"trials/suite=golden/day={DAY}/run-1.parquet"
    table = pq.ParquetFile(file).read()
    pq.write_table(table.append_column("added", pa.array(["x"])), file)
    assert list(history.trials().columns) == arrow_schema().names


def test_days_and_suites_are_folders(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    write(history, "run-1")
    later = a_plan(GOLDEN, run_id="run-2", created_at=datetime(2026, 2, 1, tzinfo=UTC))
    history.write_run("run-2", "2026-02-01", table_of([row(a_trial(GOLDEN), later)]), {})
    partitions = ds.dataset(tmp_path / "trials", format="parquet", partitioning="hive")
    assert len(partitions.files) == 3
    assert sorted(history.trials()["day"].unique()) == [DAY, "2026-02-01"]
    assert len(history.trials({"day": "2026-02-01"})) == 1


def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write the history"):
        write(History(str(tmp_path / "file")))


def test_an_unknown_kind_of_place_is_a_storage_error() -> None:
    with pytest.raises(StorageError, match="cannot be opened"):
        History("gopher://somewhere")


def test_a_relative_folder_is_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(History("kept/here"))
    assert (tmp_path / "kept/here/trials").is_dir()


def test_a_run_without_trials_is_no_trial(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    history.write_run("run-1", DAY, table_of([]), {})
    assert len(history.trials()) == 0
