"""Pins: from what the user says to the file and away again."""

from pathlib import Path

import pytest

from passgate.tasks.commands.baseline import clear, pin, pinned_commit, pinned_runs
from passgate.tasks.errors import UsageError
from passgate.tasks.history.columns import trials_table
from passgate.tasks.history.dataset import History
from passgate.tasks.model.baseline import Pins
from tests.builders import a_plan, a_task, a_trial
from tests.project import Project

RUNS = ("20260103T000000Z-nightly-c", "20260102T000000Z-ci_merge-b", "20260102T000000Z-ci_merge-a")
PINS = Pins(commit="abc", reason="why", by="Ann")


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Three runs on two days."""
    history = History(str(tmp_path / "history"))
    for run_id in RUNS:
        plan = a_plan(a_task(), run_id=run_id)
        history.write_run(run_id, trials_table((a_trial(a_task(), number) for number in (0, 1)), plan), {})
    return history


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([RUNS[1]], RUNS[1:2]),
        (["20260103"], RUNS[:1]),
        (["20260102"], RUNS[1:]),
        (["20260102", RUNS[2], "2026"], RUNS),
    ],
)
def test_runs_are_found_by_how_their_ids_begin(history: History, names: list[str], found: tuple[str, ...]) -> None:
    assert pinned_runs(history, names) == found


@pytest.mark.parametrize("unknown", ["2027", "", "ci_merge", RUNS[0] + "x"])
def test_a_run_that_is_not_in_the_history_is_refused(history: History, unknown: str) -> None:
    with pytest.raises(UsageError, match="has no run") as caught:
        pinned_runs(history, ["20260103", unknown])
    assert f"{unknown!r}; its newest are {RUNS[0]}" in str(caught.value)


def test_a_run_is_pinned_by_its_folder(history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".passgate/runs" / RUNS[0]
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for path in (f"{folder}", f".passgate/runs/{RUNS[0]}/"):
        assert pinned_runs(history, [path]) == (RUNS[0],)
    with pytest.raises(UsageError, match=r"is not the folder of a run in .passgate/runs: use the run's id"):
        pinned_runs(history, [f"elsewhere/{RUNS[0]}"])


def test_what_has_no_runs_or_no_commit_has_none_to_pin(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no runs yet: `passgate run` makes the first"):
        pinned_runs(History(str(tmp_path / "none")), ["2026"])
    with pytest.raises(UsageError, match="there is no repository with a commit around"):
        pinned_commit(tmp_path, "HEAD")


def test_a_commit_is_pinned_by_its_whole_hash(bare_project: Project) -> None:
    head = bare_project.git("rev-parse", "HEAD")
    assert [pinned_commit(bare_project.path, name) for name in ("HEAD", "main", head[:8], head)] == [head] * 4
    for name in ("nowhere", "", "--all", "f" * 40):
        with pytest.raises(UsageError, match="git knows no commit"):
            pinned_commit(bare_project.path, name)


def test_a_pin_says_what_it_replaces_and_a_cleared_one_what_it_was(tmp_path: Path) -> None:
    gates = tmp_path / "gates.yaml"
    other = Pins(runs=("a",), reason="better")
    assert clear(gates) is None
    assert pin(gates, PINS) is None
    assert pin(gates, other) == PINS
    assert clear(gates) == other
    assert list(tmp_path.iterdir()) == []
