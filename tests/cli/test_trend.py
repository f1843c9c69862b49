"""`passgate trend`: what has changed in a history, in every format."""

import csv
import json
import os
import threading
from pathlib import Path

import pytest
from bench.change_points import Planted
from bench.generated_history import night_id, task_names, write_generated

from passgate.tasks.history.columns import rows, table_of
from passgate.tasks.history.dataset import History
from tests.builders import a_plan, a_run_id, a_task, begun, trials_of
from tests.project import Project

NIGHTS = 40


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 nights, of which the last 4 have a regression of one task."""
    folder = tmp_path_factory.mktemp("trend") / "history"
    write_generated(str(folder), NIGHTS, 3, (Planted("", "passed", 12, NIGHTS - 4, 0.9),))
    return folder


def test_the_screen_names_what_changed_by_which_task_between_which_commits(
    bare_project: Project, history: Path
) -> None:
    result = bare_project.passgate("trend", "--history", str(history))
    assert result.returncode == 0, result.stderr
    assert "▼ adversarial pass rate" in result.stdout
    assert f"by {task_names()[12][1]}" in result.stdout
    assert f"run {night_id(NIGHTS - 4)}, commits 0000000000..0000000000" in result.stdout
    assert len(result.stdout.splitlines()) <= 40


@pytest.mark.slow
def test_every_format_is_written_by_the_name_of_its_file(bare_project: Project, history: Path) -> None:
    for name in ("x.json", "x.csv", "x.png", "x.html"):
        result = bare_project.passgate("trend", "--history", str(history), "--suite", "adversarial", "--output", name)
        assert (result.returncode, result.stdout) == (0, ""), result.stderr
    folder = bare_project.path
    (change,) = json.loads((folder / "x.json").read_text())["changes"]
    assert change["tasks"] == [task_names()[12][1]]
    weeks = {row[1] for row in csv.reader((folder / "x.csv").read_text().splitlines()[1:])}
    assert weeks == {f"2025-W{week:02}" for week in range(1, 7)}
    assert (folder / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "x.html").read_text()


def test_a_pipe_is_written_into_and_not_replaced(bare_project: Project, history: Path) -> None:
    pipe = bare_project.path / "pipe.csv"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    result = bare_project.passgate("trend", "--history", str(history), "--since", "2025-02-01", "--output", str(pipe))
    reader.join(60)
    assert result.returncode == 0, result.stderr
    assert pipe.is_fifo()
    assert "suite,label" in read[0] or "nightly of" in read[0]


def test_runs_that_are_not_there_are_a_mistake_with_its_remedy(bare_project: Project, history: Path) -> None:
    for options, remedy in ((("--agent", "nobody"), "it has runs of"), (("--since", "yesterday"), "as 2026-01-31")):
        result = bare_project.passgate("trend", "--history", str(history), *options)
        assert result.returncode == 2
        assert remedy in result.stderr


def test_a_history_of_the_future_says_why_it_has_nothing_to_show(bare_project: Project) -> None:
    run_id = a_run_id("29990101")
    plan = a_plan(a_task(), run_id=run_id, created_at=begun(run_id))
    made = table_of(rows(trials_of(a_task(), "ppp"), plan))
    History(str(bare_project.path / ".passgate/history")).write_run(run_id, "2999-01-01", made, {})
    result = bare_project.passgate("trend")
    assert result.returncode == 2
    assert "no run to show" in result.stderr
    assert "it is in the future" in result.stderr


def test_a_file_of_no_known_format_is_a_mistake_with_its_remedy(bare_project: Project, history: Path) -> None:
    result = bare_project.passgate("trend", "--history", str(history), "--output", "x.pdf")
    assert result.returncode == 2
    assert "x.pdf: name a file that ends with .txt, .json, .csv, .md, .png, .svg or .html" in result.stderr
    assert not (bare_project.path / "x.pdf").exists()


def test_a_history_that_is_a_file_is_a_mistake(bare_project: Project) -> None:
    (bare_project.path / "history").write_text("")
    for command in (("trend",), ("history", "list")):
        result = bare_project.passgate(*command, "--history", "history")
        assert result.returncode == 2
        assert "the history history is a file: name a folder or URL" in result.stderr


def test_a_task_that_the_history_does_not_have_is_named(bare_project: Project, history: Path) -> None:
    result = bare_project.passgate("trend", "--history", str(history), "--task", "nope")
    assert result.returncode == 2
    assert "the history has no runs of the task nope; it has runs of" in result.stderr


def test_a_history_without_runs_says_how_to_get_one(bare_project: Project) -> None:
    result = bare_project.passgate("trend")
    assert result.returncode == 2
    assert "passgate run" in result.stderr
