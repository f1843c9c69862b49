"""`passgate judge` and `passgate report`: a stored run, without running anything."""

from pathlib import Path

from tests.cli.commands import exits, refused, told
from tests.gates import finished_trials
from tests.scenarios import Scenarios
from tests.scenarios.gates import a_green_run, a_red_run


def test_a_stored_run_is_judged_under_another_policy(scenario: Scenarios, tmp_path: Path) -> None:
    red = scenario(a_red_run).copy(tmp_path / "copy")
    before = {file: file.read_bytes() for file in red.path.rglob(".passgate/**/*") if file.is_file()}
    assert "task_failed" in exits(red, 1, "judge", "last").stdout
    red.write("lenient.yaml", (red.path / "gates.yaml").read_text().replace(", task_failed]", "]"))
    told(red, "judge", "last", "--gates", "lenient.yaml")
    after = {file: file.read_bytes() for file in red.path.rglob(".passgate/**/*") if file.is_file()}
    assert after == before, "judging writes nothing"


def test_a_run_that_never_ended_is_inconclusive(scenario: Scenarios, tmp_path: Path) -> None:
    run = scenario(a_green_run).copy(tmp_path / "copy")
    (folder,) = run.run_folders()
    lines = (folder / "journal.jsonl").read_text().splitlines(keepends=True)
    (folder / "journal.jsonl").write_text(lines[0])
    (folder / "verdict.json").unlink()
    result = exits(run, 3, "judge", "last")
    assert "1 of 2 trials" in result.stdout
    said = f"passgate: the run {folder.name} has not ended: this judges the trials that it has so far\n"
    assert (result.stderr, len(finished_trials(run))) == (said, 1)


def test_every_run_has_a_page_and_report_writes_it_again(scenario: Scenarios, tmp_path: Path) -> None:
    red = scenario(a_red_run).copy(tmp_path / "copy")
    page = red.run_folders()[0] / "report.html"
    shown = str(page.relative_to(red.path))
    assert f"page  {shown}" in scenario(a_red_run).ended().stdout.splitlines()
    first = page.read_text(encoding="utf-8")
    assert "ci_merge FAIL" in first
    assert 'id="golden/first/1"' in first
    page.unlink()
    result = exits(red, 0, "report", "last")
    assert (result.stdout, result.stderr) == (f"{shown}\n", "")
    assert page.read_text(encoding="utf-8") == first
    assert "the page shows no history" in exits(red, 0, "report", "last", "--history", "nowhere://x").stderr
    assert "no run 'none-such'" in refused(red, "report", "none-such")
