"""`passgate history`."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from bench.generated_history import night_id, write_generated

from tests.object_store import ObjectStore, object_store
from tests.project import Project

__all__ = ["object_store"]

GATES = (Path(__file__).parents[2] / "gates.yaml").read_text(encoding="utf-8")


def gates_with(runs: int) -> str:
    """The shipped gates, for baselines of so many runs."""
    gates = yaml.safe_load(GATES)
    return yaml.safe_dump(gates | {"baseline": {**gates.get("baseline", {}), "runs": runs}})


@pytest.fixture
def kept(bare_project: Project) -> Path:
    """A history of three nights."""
    write_generated(str(bare_project.path / "kept"), 3, 1)
    return bare_project.path / "kept"


def told(project: Project, *arguments: str, **extra: str) -> str:
    """What a command prints that ends well."""
    done = project.passgate("history", *arguments, **extra)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_runs_are_listed_compared_and_compacted(bare_project: Project, kept: Path) -> None:
    place = ("--history", "kept")
    listed = told(bare_project, "list", *place)
    assert [line.split()[0] for line in listed.splitlines()[1:]] == [night_id(night) for night in range(3)]
    assert told(bare_project, "compare", "last", *place).startswith(f"{night_id(1)} -> {night_id(2)}: ")
    assert told(bare_project, "compact", *place) == "joined 3 files of summaries\n"
    assert [file.name for file in (kept / "summaries").rglob("*.parquet")] == ["compacted.parquet"]
    assert told(bare_project, "list", *place) == listed
    assert told(bare_project, "show", "last", *place).startswith(f"{night_id(2)}\n")
    assert json.loads(told(bare_project, "show", night_id(0), *place, "--format", "json"))["run"]["tasks"] == 33


def test_compacting_says_what_it_has_done(bare_project: Project, kept: Path) -> None:
    place = ("--history", "kept")
    summaries = sorted((kept / "summaries").rglob("*.parquet"))
    summaries[0].unlink()
    assert told(bare_project, "compact", *place) == (
        "made the missing summaries of 1 run, joined 2 files of summaries\n"
    )
    shutil.rmtree(kept / "summaries")
    assert json.loads(told(bare_project, "compact", *place, "--json")) == {"joined": 0, "made": 3}
    assert told(bare_project, "compact", *place) == "nothing to join\n"


def test_a_history_of_nothing_is_no_mistake(bare_project: Project) -> None:
    assert told(bare_project, "list") == "No runs.\n"
    assert told(bare_project, "prune", "--keep", "1") == "Nothing to remove.\n0 runs left.\n"


@pytest.mark.slow
def test_rows_are_exported_to_a_file_or_written_through(bare_project: Project, kept: Path) -> None:
    folder, place = bare_project.path, ("--history", "kept")
    only = ("--since", "2025-01-02", "--until", "2025-01-02", "--gate", "nightly", "--suite", "golden")
    lines = told(bare_project, "export", "-", *place, *only).splitlines()
    assert {(json.loads(line)["day"], json.loads(line)["suite"]) for line in lines} == {("2025-01-02", "golden")}
    (folder / "real.csv").write_text("before")
    (folder / "link.csv").symlink_to("real.csv")
    told(bare_project, "export", "link.csv", *place, "--rows", "summaries")
    assert (folder / "link.csv").is_symlink()
    assert len((folder / "real.csv").read_text().splitlines()) == 1 + 3 * 33
    os.mkfifo(folder / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((folder / "pipe").read_bytes()))
    reader.start()
    told(bare_project, "export", "pipe", *place, "--format", "parquet", *only)
    reader.join(timeout=60)
    assert (folder / "pipe").is_fifo()
    assert read[0][:4] == read[0][-4:] == b"PAR1"
    assert not [file.name for file in folder.iterdir() if "csv." in file.name]


@pytest.mark.slow
def test_an_export_that_fails_leaves_the_file_as_it_was(bare_project: Project, kept: Path) -> None:
    (bare_project.path / "kept.csv").write_text("before")
    newer = next((kept / "trials").rglob(f"{night_id(2)}.parquet"))
    script = (
        "import sys, pyarrow as pa, pyarrow.parquet as pq; table = pq.ParquetFile(sys.argv[1]).read();"
        "pq.write_table(table.set_column(0, 'schema_version', pa.array([99] * len(table))), sys.argv[1])"
    )
    subprocess.run([bare_project.command()[0], "-c", script, str(newer)], check=True)
    done = bare_project.passgate("history", "export", "kept.csv", "--history", "kept")
    assert (done.returncode, "written by a newer passgate" in done.stderr) == (3, True), done.stderr
    assert (bare_project.path / "kept.csv").read_text() == "before"
    assert [file.name for file in bare_project.path.iterdir() if "csv" in file.name] == ["kept.csv"]


def test_old_runs_go_when_somebody_says_yes(bare_project: Project, kept: Path) -> None:
    place = ("--history", "kept")
    bare_project.write("gates.yaml", gates_with(runs=1))
    dry = told(bare_project, "prune", *place, "--before", "2025-01-03", "--dry-run")
    assert dry.endswith("2 runs would be removed.\n1 run left.\n")
    refused = bare_project.passgate("history", "prune", *place, "--keep", "1")
    assert (refused.returncode, "give --yes to remove these runs" in refused.stderr) == (2, True)
    neither = bare_project.passgate("history", "prune", *place, "--yes")
    assert (neither.returncode, "give --before or --keep" in neither.stderr) == (2, True)
    bare_project.write("baseline.yaml", f"runs: [{night_id(0)}]\nreason: it was good\n")
    gone = told(bare_project, "prune", *place, "--keep", "1", "--yes")
    assert gone.endswith("1 run is removed.\n1 run stays: pinned in baseline.yaml\n2 runs left.\n")
    assert not list(kept.rglob(f"*{night_id(1)}*"))
    assert len(told(bare_project, "list", *place).splitlines()) == 3


@pytest.fixture
def remote(bare_project: Project, object_store: ObjectStore) -> Iterator[str]:
    bare_project.environment = {**object_store.environment, "PASSGATE_ENGINE": "none"}
    return object_store.new_url()


@pytest.mark.slow
def test_all_of_it_works_at_a_url(bare_project: Project, object_store: ObjectStore, remote: str) -> None:
    write_generated(remote, 12, 1)
    bare_project.environment = {**bare_project.environment, "PASSGATE_HISTORY_URL": remote}
    bare_project.write("gates.yaml", gates_with(runs=2))
    ids = [night_id(night) for night in range(12)]
    assert [line.split()[0] for line in told(bare_project, "list").splitlines()[1:]] == ids
    assert told(bare_project, "compare", ids[3], ids[7]).startswith(f"{ids[3]} -> {ids[7]}: ")
    assert told(bare_project, "compact") == "joined 12 files of summaries\n"
    assert [name for name in object_store.keys(f"{remote}/summaries") if name.endswith(".parquet")] == [
        "2025-01/compacted.parquet"
    ]
    assert told(bare_project, "show", ids[5]).startswith(ids[5])
    assert len(told(bare_project, "export", "-", "--rows", "summaries").splitlines()) == 12 * 33
    assert len(told(bare_project, "export", "-", "--since", "2025-01-12").splitlines()) == 194
    gone = told(bare_project, "prune", "--before", "2025-01-11", "--yes")
    assert gone.endswith("10 runs are removed.\n2 runs left.\n")
    assert not [name for name in object_store.keys(remote) if ids[0] in name]
    assert [line.split()[0] for line in told(bare_project, "list").splitlines()[1:]] == ids[10:]
    trend = bare_project.passgate("trend")
    assert (trend.returncode, trend.stdout.splitlines()[0].startswith("nightly of ")) == (0, True), trend.stderr


@pytest.mark.slow
def test_a_run_writes_its_history_at_a_url(bare_project: Project, object_store: ObjectStore, remote: str) -> None:
    bare_project.passgate("init", ".")
    run = bare_project.passgate("run", "ci_merge", "--history", remote)
    (run_id,) = [line.split()[0] for line in told(bare_project, "list", "--history", remote).splitlines()[1:]]
    kept = [name for name in object_store.keys(remote) if name.endswith(".parquet")]
    assert [name.partition("/")[0] for name in kept if name.startswith("summ")] == ["summaries"], run.stderr
    assert all(name.endswith(f"/{run_id}.parquet") for name in kept)
    again = bare_project.passgate("run", "ci_merge", "--history", remote)
    assert again.returncode == run.returncode
    compared = told(bare_project, "compare", "last", "--history", remote)
    assert compared.startswith(f"{run_id} -> ")
    assert not [name for name in object_store.keys(remote) if ".activity/" in name and name.endswith(".json")]
