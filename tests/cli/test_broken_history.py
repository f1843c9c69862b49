"""A history of which a file is broken: every command that reads it says so and goes on with the others."""

from pathlib import Path

import pytest

from tests.gates import WRITES_OK, gate_of
from tests.project import Project

pytestmark = pytest.mark.slow

SKIPPED = "the history .passgate/history: 1 file is skipped: suite=golden/day="


def test_every_reader_skips_a_broken_file_and_counts_it(project: Project) -> None:
    gate_of(project, k=2)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    project.write("agent.sh", "printf ok > result.txt")
    agent = ("--agent", f"cli:sh {project.path}/agent.sh")
    first = project.passgate("run", "ci_merge", *agent)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "skipped" not in first.stderr
    (whole,) = Path(project.path, ".passgate/history/trials").rglob("*.parquet")
    whole.with_name("broken.parquet").touch()
    for command in (
        ("run", "ci_merge", *agent),
        ("judge", "last"),
        ("trend",),
        ("baseline", "show", *agent),
        ("forecast", "ci_merge", *agent),
    ):
        result = project.passgate(*command)
        assert result.returncode == 0, (command, result.stdout, result.stderr)
        assert result.stderr.count(SKIPPED) == 1, (command, result.stderr)
