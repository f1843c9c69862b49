"""Removing runs, while others store runs and after a removal was cut short."""

from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError
from passgate.tasks.history.activity import STORING, TIDYING, marked, others
from passgate.tasks.history.columns import rows, table_of
from passgate.tasks.history.dataset import History
from passgate.tasks.history.housekeeping import prune
from passgate.tasks.model.task import Suite
from tests.builders import a_plan, a_task, trials_of

TASK, ATTACK = a_task(), a_task(task_id="attack", suite=Suite.ADVERSARIAL)
DAY = "2026-01-31"


def store(history: History, run_id: str, statuses: str = "ppp", day: str = DAY) -> None:
    plan = a_plan(TASK, ATTACK, run_id=run_id)
    trials = [trial for task in (TASK, ATTACK) for trial in trials_of(task, statuses)]
    table = table_of(one | {"day": day} for one in rows(trials, plan))
    history.write_run(run_id, day, table, {f"digest-{run_id}": "{}"})


def outcomes(history: History) -> dict[str, str]:
    table = history.summaries(["run_id", "suite", "outcomes"])
    return {row["run_id"]: row["outcomes"] for row in table.to_pylist()}


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


@pytest.fixture(params=["folder", "fsspec"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> History:
    return History({"folder": str(tmp_path / "history"), "fsspec": f"memory://{tmp_path.name}/tidied"}[request.param])


def test_of_two_summaries_of_a_run_the_later_one_counts(local: History, tmp_path: Path) -> None:
    """As a branch of git has them that was merged after the run was stored twice."""
    store(local, "run-1", "fff")
    earlier = tmp_path / f"summaries/{DAY}/run-1.parquet"
    content = earlier.read_bytes()
    store(local, "run-1", "ppp")
    assert files(tmp_path / "summaries") == [f"{DAY}/run-1.2.parquet"]
    earlier.write_bytes(content)
    assert outcomes(local) == {"run-1": "ppp"}


def test_pruned_runs_go_whole_and_the_others_stay(history: History) -> None:
    for run_id, day in (("run-1", "2026-01-30"), ("run-2", DAY), ("run-3", "2026-02-01")):
        store(history, run_id, day=day)
    before = outcomes(history)
    prune(history, {"run-1", "run-3", "run-unknown"})
    assert outcomes(history) == {"run-2": before["run-2"]}
    assert set(history.trials()["run_id"]) == {"run-2"}
    assert not history.pruned
    prune(history, {"run-2"})
    assert len(history.trials()) == len(outcomes(history)) == 0


def test_nothing_is_left_of_a_pruned_run(local: History, tmp_path: Path) -> None:
    store(local, "run-1")
    store(local, "run-10")
    left = [name for name in files(tmp_path) if "run-10" in name]
    prune(local, {"run-1"})
    assert files(tmp_path) == left


def test_a_removal_that_is_cut_short_is_ended_later(local: History, monkeypatch: pytest.MonkeyPatch) -> None:
    for run_id in ("run-1", "run-2"):
        store(local, run_id)
    real, left = Path.unlink, [1]

    def deleting(name: str) -> None:
        if "run-1" in name and left[0] == 0:
            raise OSError("the machine stops here")
        left[0] -= "run-1" in name
        real(Path(name), missing_ok=True)

    with monkeypatch.context() as patched:
        patched.setattr(local.files, "remove", deleting)
        with pytest.raises(StorageError, match="the machine stops here"):
            prune(local, {"run-1"})
    again = History(str(Path.cwd()))
    assert again.pruned == {"run-1"}
    assert any("run-1" in name and "trials" in name for name in files(Path()))
    assert set(again.trials()["run_id"]) == set(outcomes(again)) == {"run-2"}
    with pytest.raises(StorageError, match=r"run-1 is being removed .* `passgate history prune`"):
        store(again, "run-1")
    prune(again, ())
    assert not any("run-1" in name for name in files(Path()))
    store(again, "run-1", "fff")
    assert outcomes(again) == {"run-1": "fff", "run-2": "ppp"}


def test_nobody_prunes_while_a_run_is_stored_or_somebody_else_tidies(history: History) -> None:
    store(history, "run-1")
    for what in (f"{STORING}-run-1", TIDYING):
        with (
            marked(history.files, what),
            pytest.raises(StorageError, match=rf"is in use: {what} by process \d+ on .*: try again, or remove"),
        ):
            prune(history, {"run-1"})
    assert set(outcomes(history)) == {"run-1"}
    assert not history.pruned
    assert not others(history.files)


def test_a_run_that_is_stored_in_that_instant_stays(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    store(history, "run-1")
    write = history.files.write

    def writing(name: str, content: bytes) -> None:
        write(name, content)
        if ".pruning" in name:  # after the first look for others
            write(".activity/storing-run-2-x.json", next(iter(marks)))

    with marked(history.files, f"{STORING}-run-2"):
        marks = [history.files.read(f".activity/{name}") or b"" for name in others(history.files)]
    monkeypatch.setattr(history.files, "write", writing)
    with pytest.raises(StorageError, match="is in use: storing-run-2"):
        prune(history, {"run-1"})
    assert set(outcomes(history)) == {"run-1"}


def test_the_mark_of_a_process_that_has_ended_keeps_nobody_away(history: History) -> None:
    store(history, "run-1")
    with marked(history.files, TIDYING):
        ((name, holder),) = others(history.files).items()
    dead = holder.model_copy(update={"process": 2**22 + 1})
    history.files.write(f".activity/{name}", dead.model_dump_json().encode())
    history.files.write(".activity/tidying-broken.json", b"{")
    prune(history, {"run-1"})
    assert not outcomes(history)
    assert not list(history.files.names(".activity"))
