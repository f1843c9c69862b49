"""`passgate judge`: another policy on the same trials, without running anything."""

import pytest

from tests.cli.test_run import WRITES_OK, gate_of
from tests.project import Project


@pytest.mark.slow
def test_a_stored_run_is_judged_under_another_policy(project: Project) -> None:
    gate_of(project, k=2)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    assert project.passgate("run", "ci_merge", "--agent", "nop").returncode == 1
    before = {file: file.read_bytes() for file in project.path.rglob(".passgate/**/*") if file.is_file()}
    again = project.passgate("judge", "last")
    assert again.returncode == 1
    assert "task_failed" in again.stdout
    lenient = (project.path / "gates.yaml").read_text().replace(", task_failed]", "]")
    project.write("lenient.yaml", lenient)
    assert project.passgate("judge", "last", "--gates", "lenient.yaml").returncode == 0
    after = {file: file.read_bytes() for file in project.path.rglob(".passgate/**/*") if file.is_file()}
    assert after == before, "judging writes nothing"


@pytest.mark.slow
def test_a_run_that_never_ended_is_inconclusive(project: Project) -> None:
    gate_of(project, k=2)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.write("agent.sh", "printf ok > result.txt")
    assert project.passgate("run", "ci_merge", "--agent", f"cli:sh {project.path}/agent.sh").returncode == 0
    folder = project.run_folders()[0]
    lines = (folder / "journal.jsonl").read_text().splitlines(keepends=True)
    (folder / "journal.jsonl").write_text(lines[0])
    (folder / "verdict.json").unlink()
    result = project.passgate("judge", "last")
    assert result.returncode == 3
    assert "1 of 2 trials" in result.stdout
    said = f"passgate: the run {folder.name} has not ended: this judges the trials that it has so far\n"
    assert result.stderr == said
