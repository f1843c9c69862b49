"""The history: a file of typed rows per run, which any Parquet reader can read."""

import errno
import os
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.columns import SCHEMA_VERSION, arrow_schema
from passgate.tasks.history.columns import rows as trial_rows
from passgate.tasks.history.dataset import EVERY_RUN, History, RunSelection
from passgate.tasks.model.task import Suite
from passgate.tasks.model.trial import TrialMetrics, TrialStatus
from tests.builders import STARTED, a_grade, a_plan, a_run_id, a_task, a_trial, a_violation

GOLDEN, ADVERSARIAL = a_task(), a_task(task_id="attack", suite=Suite.ADVERSARIAL)
PLAN = a_plan(GOLDEN, ADVERSARIAL)
FIRST, SECOND, THIRD = (a_run_id(day) for day in ("20260131", "20260201", "20260301"))
FILE = Path(f"trials/{FIRST}.parquet")


def rows(*statuses: TrialStatus, **changes: Any) -> list[dict[str, Any]]:
    """One row per status and suite."""
    tasks = (GOLDEN, ADVERSARIAL)
    return trial_rows((a_trial(t, n, status, **changes) for t in tasks for n, status in enumerate(statuses)), PLAN)


def stored(rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=arrow_schema())


def write(history: History, run_id: str = FIRST, *statuses: TrialStatus, **changes: Any) -> None:
    day = f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}"
    every = [one | {"run_id": run_id, "day": day} for one in rows(*(statuses or [TrialStatus.PASSED]), **changes)]
    history.write_run(run_id, stored(every), {f"digest-{run_id}": '{"messages": []}'})


def read(history: History, columns: Sequence[str] | None = None, **where: str) -> pd.DataFrame:
    """The rows whose columns have these values."""
    conditions = [ds.field(column) == value for column, value in where.items()]
    frame: pd.DataFrame = history.trials(columns, reduce(and_, conditions) if conditions else None).to_pandas()
    return frame


def write_as_before(file: Path, version: int = 5, lacking: Sequence[str] = ()) -> None:
    """Put the rows of a file where an older passgate has them: in a file for each suite, in folders."""
    table = pq.ParquetFile(file).read()
    for suite in pc.unique(table["suite"]).to_pylist():
        rows_then = table.filter(pc.equal(table["suite"], suite)).to_pylist()
        folder = Path(f"trials/suite={suite}/day={rows_then[0]['day']}")
        for one in rows_then:
            one |= {"schema_version": version, "added": "x"}
            for name in ("suite", "day", *lacking):
                del one[name]
            for grade in one["grades"]:
                if version == 1:
                    del grade["votes"]
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows_then), folder / file.name)


@pytest.fixture(params=["folder", "file URL", "fsspec"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> History:
    locations = {
        "folder": str(tmp_path / "history"),
        "file URL": (tmp_path / "history").as_uri(),
        "fsspec": f"memory://{tmp_path.name}/history",
    }
    return History(locations[request.param])


def test_what_is_written_reads_back_whole_or_by_rows_and_columns(history: History) -> None:
    write(history, FIRST, TrialStatus.PASSED, TrialStatus.FAILED)
    write(history, SECOND, TrialStatus.FAILED)
    trials = read(history)
    assert list(trials["run_id"]) == [FIRST] * 4 + [SECOND] * 2
    read_back = [set(trials[name]) for name in ("suite", "day", "status")]
    assert read_back == [{"golden", "adversarial"}, {"2026-01-31", "2026-02-01"}, {"passed", "failed"}]
    assert set(read(history, run_id=SECOND)["status"]) == {"failed"}
    assert len(read(history, run_id=SECOND, suite="golden")) == 1
    assert len(read(history, run_id=THIRD)) == 0
    some = read(history, ["run_id", "suite", "day"], agent="cli:my-agent")
    assert (list(some.columns), len(some)) == (["run_id", "suite", "day"], 6)


def test_a_history_without_trials_is_empty(history: History, tmp_path: Path) -> None:
    history.refuse_unwritable()
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
    trials = read(history)
    assert (len(trials), list(trials.columns)) == (0, arrow_schema().names)
    assert len(read(history, agent="x")) == 0
    assert list(read(history, ["run_id", "day"]).columns) == ["run_id", "day"]
    history.write_run(FIRST, stored([]), {})
    assert (history.run_ids(), len(read(history)), len(history.summaries())) == ([], 0, 0)


def test_a_run_that_is_written_again_takes_its_own_place(history: History) -> None:
    write(history, FIRST, TrialStatus.ERROR, TrialStatus.ERROR)
    write(history, SECOND)
    write(history, FIRST, TrialStatus.PASSED)
    assert list(read(history, run_id=FIRST)["status"]) == ["passed", "passed"]
    assert len(read(history)) == 4


@pytest.mark.parametrize(
    ("runs", "chosen"),
    [
        (RunSelection(), [FIRST, SECOND, THIRD]),
        (RunSelection(newest=2), [SECOND, THIRD]),
        (RunSelection(since="2026-01-31", newest=1), [FIRST, SECOND, THIRD]),
        (RunSelection(since="2026-02-01", until="2026-02-28"), [SECOND]),
        (RunSelection(until="2026-02-01", newest=1), [SECOND]),
        (RunSelection(before=THIRD, newest=1), [SECOND]),
        (RunSelection(gate="nightly"), [SECOND]),
        (RunSelection(ids=[FIRST, THIRD]), [FIRST, THIRD]),
    ],
)
def test_only_the_files_of_the_chosen_runs_are_opened(
    local: History, runs: RunSelection, chosen: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    of_night = {SECOND: SECOND.replace("ci_merge", "nightly")}
    for run_id in (FIRST, of_night[SECOND], THIRD):
        write(local, run_id)
    expected = [of_night.get(run_id, run_id) for run_id in chosen]
    for run_id in {FIRST, of_night[SECOND], THIRD}.difference(expected):
        Path(f"trials/{run_id}.parquet").write_text("broken")
    assert sorted(set(local.trials(["run_id"], runs=runs)["run_id"].to_pylist())) == expected
    assert sorted(set(local.summaries(runs)["run_id"].to_pylist())) == expected
    assert caplog.messages == []


def test_a_removed_run_goes_whole_and_the_others_stay(history: History, tmp_path: Path) -> None:
    for run_id in (FIRST, SECOND, THIRD):
        write(history, run_id)
    history.remove_runs({FIRST, THIRD, a_run_id("20260401")})
    assert history.run_ids() == [SECOND]
    assert set(read(history)["run_id"]) == {SECOND}
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and SECOND not in file.name]
    write(history, FIRST)
    assert history.run_ids() == [FIRST, SECOND]


def test_a_removal_that_was_cut_short_can_be_repeated(local: History, monkeypatch: pytest.MonkeyPatch) -> None:
    write(local, FIRST)
    write_as_before(FILE)
    FILE.unlink()
    old = Path("summaries/2026-01-31", f"{FIRST}.2.parquet")
    old.parent.mkdir(parents=True)
    old.touch()
    real = History._entries

    def entries(history: History, folder: str) -> Iterator[tuple[str, bool]]:
        if folder == "trials":
            raise OSError("the machine stops here")
        yield from real(history, folder)

    with monkeypatch.context() as patched:
        patched.setattr(History, "_entries", entries)
        with pytest.raises(StorageError, match="the machine stops here"):
            local.remove_runs({FIRST})
    assert local.run_ids() == [FIRST]
    local.remove_runs({FIRST})
    assert not [file for file in Path().rglob("*") if file.is_file()]


def test_every_column_has_its_type(local: History) -> None:
    violations = (a_violation(), a_violation(message="again"))
    grades = (a_grade(votes=(0.5, 1.0), violations=violations), a_grade(name="judge", error="no judge"))
    write(local, grades=grades, metrics=TrialMetrics(tokens_in=3, cost=0.25, wall_time_seconds=1.5))
    trials = read(local, suite="golden")
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


def test_there_is_one_file_per_run_which_pandas_reads_without_us(local: History) -> None:
    write(local, FIRST, TrialStatus.PASSED, TrialStatus.FAILED)
    write(local, SECOND)
    assert sorted(str(file) for file in Path().rglob("*") if file.is_file()) == [
        f"{folder}/{run_id}.parquet" for folder in ("transcripts", "trials") for run_id in (FIRST, SECOND)
    ]
    trials = pd.read_parquet("trials")
    assert set(trials.columns) == set(arrow_schema().names)
    assert (set(trials["suite"]), list(trials["status"]).count("failed")) == ({"golden", "adversarial"}, 2)
    stored = pd.read_parquet("transcripts")
    assert dict(zip(stored["transcript_digest"], stored["transcript"], strict=True)) == {
        f"digest-{run_id}": '{"messages": []}' for run_id in (FIRST, SECOND)
    }
    assert b"US dollars" in pq.read_schema(FILE).field("cost").metadata[b"description"]


def test_files_of_both_layouts_are_read_by_us_and_by_pandas(local: History) -> None:
    write(local, FIRST, TrialStatus.PASSED, TrialStatus.FAILED)
    write(local, SECOND)
    before = read(local)
    write_as_before(FILE)
    pd.testing.assert_frame_equal(read(local), before)  # a run in both layouts counts once
    FILE.unlink()
    sorts = ["run_id", "suite", "trial"]
    old = read(local).assign(schema_version=SCHEMA_VERSION).sort_values(sorts, ignore_index=True)
    pd.testing.assert_frame_equal(old, before.sort_values(sorts, ignore_index=True))
    assert len(pd.read_parquet("trials", columns=["run_id", "suite", "day", "status"])) == 6


def test_a_write_that_ends_half_way_is_not_seen(local: History, monkeypatch: pytest.MonkeyPatch) -> None:
    write(local, FIRST)
    real = pq.write_table

    def runs_out_of_disk(table: pa.Table, where: str, **options: Any) -> None:
        real(table, where, **options)
        os.truncate(where, Path(where).stat().st_size // 2)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq, "write_table", runs_out_of_disk)
    with pytest.raises(StorageError, match=r"cannot write the history .*No space left"):
        write(local, SECOND)
    assert len(read(local)) == 2
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
    write(local, FIRST)
    write(local, SECOND)
    BROKEN[what](FILE)
    assert list(read(local)["run_id"]) == [SECOND] * 2
    assert len(read(local, ["run_id"], agent="cli:my-agent")) == 2
    (first, _) = caplog.messages
    assert first.startswith(f"the history {tmp_path}: 1 file is skipped: {FIRST}.parquet (")
    assert first.endswith("); restore or remove what is skipped")
    assert first.count(str(tmp_path)) == 1
    assert what != "another value" or "CRC checksum verification failed" in first


def test_stray_files_are_skipped_and_counted(local: History, caplog: pytest.LogCaptureFixture) -> None:
    write(local, FIRST)
    whole = FILE.read_bytes()
    for name in (".DS_Store", "_notes", f".{SECOND}.parquet.unfinished"):
        FILE.with_name(name).write_bytes(whole[: len(whole) // 2])
    assert len(pd.read_parquet("trials")) == 2
    Path("trials/suite=golden").mkdir()
    for name in ("README.md", f"{FIRST} copy.parquet", "suite=golden/copy.parquet", "notes.txt"):
        (Path("trials") / name).write_bytes(whole)
    assert len(read(local)) == 2
    (message,) = caplog.messages
    assert "4 files are skipped" in message
    assert "1 more" in message


def test_a_file_that_vanishes_while_it_is_read_is_skipped(
    local: History, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(local, FIRST)
    write(local, SECOND)
    real = History._read

    def read_late(history: History, *arguments: Any, **options: Any) -> pa.Table | str:
        FILE.unlink(missing_ok=True)
        return real(history, *arguments, **options)

    monkeypatch.setattr(History, "_read", read_late)
    assert set(read(local)["run_id"]) == {SECOND}
    assert f"{FIRST}.parquet" in caplog.text


@pytest.mark.parametrize("place", ["", "trials", "transcripts"])
def test_a_history_that_cannot_take_a_run_is_found_before_it(tmp_path: Path, place: str) -> None:
    location = tmp_path / "history"
    file = location / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("in the way")
    with pytest.raises(UsageError, match=r"the history .* cannot be written: .*--history"):
        History(str(location)).refuse_unwritable()


def test_a_newer_history_is_refused(local: History) -> None:
    every = [one | {"schema_version": SCHEMA_VERSION + 1} for one in rows(TrialStatus.PASSED)]
    local.write_run(FIRST, stored(every), {})
    with pytest.raises(StorageError, match="written by a newer passgate"):
        read(local)


OF_VERSION_4 = ("agent_digest", "policy_digest", "confirming")


@pytest.mark.parametrize(
    ("version", "lacking"),
    [
        (1, ("model", "tokens_cached", "judge_cost", *OF_VERSION_4)),
        (3, OF_VERSION_4),
        (5, ("loop_rate", "isolation")),
    ],
)
def test_what_an_older_history_lacks_is_empty(local: History, version: int, lacking: tuple[str, ...]) -> None:
    write(local, FIRST, grades=(a_grade(),))
    write_as_before(FILE, version, lacking)
    FILE.unlink()
    assert list(read(local).columns) == arrow_schema().names
    one = read(local, suite="golden").iloc[0]
    assert (one["run_id"], one["grades"][0]["name"]) == (FIRST, "answer")
    assert all(pd.isna(one[name]) for name in lacking)
    assert len(read(local, suite="golden", agent_digest="a")) == 0
    assert local.summaries(EVERY_RUN)["outcomes"].to_pylist() == ["p", "p"]


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
