"""A history of which a file is broken: every command that reads it says so and goes on with the others."""

from pathlib import Path

import pytest

from tests.builders import a_run_id
from tests.cli.commands import exits
from tests.gates import shell_agent
from tests.scenarios import Scenarios
from tests.scenarios.gates import a_green_run

pytestmark = pytest.mark.slow

SKIPPED = "the history .passgate/history: 1 file is skipped: 2"


def test_every_reader_skips_a_broken_file_and_counts_it(scenario: Scenarios, tmp_path: Path) -> None:
    first = scenario(a_green_run)
    assert "skipped" not in first.ended().stderr
    project = first.copy(tmp_path / "copy")
    (whole,) = (project.path / ".passgate/history/trials").rglob("*.parquet")
    whole.with_name(a_run_id("20260101") + ".parquet").touch()
    agent = shell_agent(project)
    for command in (
        ("run", "ci_merge", *agent),
        ("judge", "last"),
        ("trend",),
        ("baseline", "show", *agent),
        ("forecast", "ci_merge", *agent),
    ):
        assert exits(project, 0, *command).stderr.count(SKIPPED) == 1, command
