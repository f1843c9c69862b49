"""`passgate trend`: ten stored runs, one of them worse."""

import xml.etree.ElementTree as ElementTree

import pytest

from tests.cli.test_run import WRITES_OK, agent_file, gate_of
from tests.conftest import Project

BAD_RUN = 6


@pytest.mark.slow
def test_of_ten_runs_the_worse_one_shows_in_the_table_and_in_the_plot(project: Project) -> None:
    gate_of(project, k=2)
    for name in ("a", "b", "c"):
        project.write(f"suites/golden/{name}.yaml", WRITES_OK.format(name=name))
    agent_file(
        project,
        """
        import os
        def agent(attempt):
            bad = os.environ["RUN"] == "6" and attempt.task_id != "a"
            (attempt.workspace / "result.txt").write_text("bad" if bad else "ok")
            return "done"
        """,
    )
    for number in range(10):
        result = project.passgate("run", "ci_merge", "--agent", "python:agent:agent", RUN=str(number))
        assert result.returncode == (1 if number == BAD_RUN else 0), result.stdout
    worse = project.run_folders()[BAD_RUN].name
    result = project.passgate("trend", "--plot", "trend.svg")
    assert result.returncode == 0, result.stderr
    table = result.stdout
    assert "10" in table
    assert f"{worse} ▼" in table or worse in next(line for line in table.splitlines() if "▼" in line)
    svg = (project.path / "trend.svg").read_text()
    ElementTree.fromstring(svg)
    assert "worse" in svg


def test_a_history_without_runs_says_how_to_get_one(bare_project: Project) -> None:
    result = bare_project.passgate("trend")
    assert result.returncode == 2
    assert "passgate run" in result.stderr
