"""`passgate trend`: what has changed in a history, in every format."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.generated_history import night_id, task_names

from tests.builders import a_run_id
from tests.cli.commands import Here, exits, refused, told
from tests.cli.stored import store_run
from tests.gates import gate_of
from tests.scenarios import Scenarios
from tests.scenarios.histories import NIGHTS, forty_nights


@pytest.fixture
def history(scenario: Scenarios) -> str:
    """40 nights, of which the last 4 have a regression of one task."""
    return str(scenario(forty_nights).path / "kept")


def test_the_screen_names_what_changed_by_which_task_between_which_commits(here: Here, history: str) -> None:
    said = told(here, "trend", "--history", history)
    assert "▼ adversarial pass rate" in said
    assert f"by {task_names()[12][1]}" in said
    assert f"run {night_id(NIGHTS - 4)}, commits 0000000000..0000000000" in said
    assert len(said.splitlines()) <= 40


def test_every_format_is_written_by_the_name_of_its_file(here: Here, history: str) -> None:
    (here.path / "x.html").symlink_to("linked")
    for name in ("x.json", "x.html"):
        assert told(here, "trend", "--history", history, "--suite", "adversarial", "--output", name) == ""
    found = json.loads((here.path / "x.json").read_text())
    (change,) = found["changes"]
    assert change["tasks"] == [task_names()[12][1]]
    assert {period["label"] for period in found["periods"]} == {f"2025-W{week:02}" for week in range(1, 7)}
    assert "<svg" in (here.path / "linked").read_text(), "a link is written into, not replaced"


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--agent", "nobody"), "it has runs of"),
        (("--since", "yesterday"), "as 2026-01-31"),
        (("--task", "nope"), "the history has no runs of the task nope; it has runs of"),
        (("--format", "csv"), "'csv' is not one of 'table', 'json', 'html'"),
        (("--output", "x.pdf"), "x.pdf: name a file that ends with .txt, .json or .html"),
    ],
)
def test_what_cannot_be_shown_is_a_mistake_with_its_remedy(
    here: Here, history: str, options: tuple[str, str], remedy: str
) -> None:
    assert remedy in refused(here, "trend", "--history", history, *options)
    assert not (here.path / "x.pdf").exists()


@pytest.mark.parametrize(("changes", "command"), [({"run_id": "x"}, "trend"), ({"gate": "x"}, "list")])
def test_rows_that_passgate_does_not_write_are_a_mistake(here: Here, changes: dict[str, str], command: str) -> None:
    gate_of(here, "a")
    store_run(here, a_run_id("20260131"), "ppp", "")
    for file in (here.path / ".passgate/history").rglob("*.parquet"):
        rows = [row | changes for row in pq.ParquetFile(file).read().to_pylist()]
        pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(file)), file)
    words = (command,) if command == "trend" else ("history", command)
    assert "the history holds rows that are not passgate's" in exits(here, 3, *words).stderr


@pytest.mark.parametrize("command", [("trend",), ("history", "list")], ids=" ".join)
def test_a_history_that_is_a_file_is_a_mistake(here: Here, command: tuple[str, ...]) -> None:
    here.write("history", "")
    assert "the history history is a file: name a folder or URL" in refused(here, *command, "--history", "history")
