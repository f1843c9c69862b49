"""`passgate report`: the page of a run."""

import pytest

from tests.cli.test_run import WRITES_OK, gate_of
from tests.project import Project


@pytest.mark.slow
def test_every_run_has_a_page_and_report_writes_it_again(project: Project) -> None:
    gate_of(project, k=2)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    run = project.passgate("run", "ci_merge", "--agent", "nop", "--engine", "none")
    page = project.run_folders()[0] / "report.html"
    assert (run.returncode, run.stdout.splitlines()[-1]) == (1, f"page  {page.relative_to(project.path)}")
    first = page.read_text(encoding="utf-8")
    assert "ci_merge FAIL" in first
    assert 'id="golden/a/1"' in first
    page.unlink()
    result = project.passgate("report", "last")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{page.relative_to(project.path)}\n"
    assert page.read_text(encoding="utf-8") == first
    elsewhere = project.passgate("report", "last", "--history", "nowhere://x")
    assert elsewhere.returncode == 0
    assert "the page shows no history" in elsewhere.stderr
    assert project.passgate("report", "none-such").returncode == 2
