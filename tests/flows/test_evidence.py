"""A task that fails on a branch: held against the runs of main before it blocks."""

from pathlib import Path

import pandas as pd
import pytest

from tests.gates import newest_run, verdict_of
from tests.project import Project
from tests.scenarios import Scenarios
from tests.scenarios.evidence import AGENT, GATES, TASK, cleared_flake, green_main, says, verdict_of_run


@pytest.fixture
def repository(scenario: Scenarios, tmp_path: Path) -> Project:
    """A gate whose main has a green run of one task; the branch `change` is checked out."""
    return scenario(green_main).copy(tmp_path / "repository")


def test_a_flake_is_cleared_by_confirming_trials_which_no_figure_counts(scenario: Scenarios) -> None:
    flake = scenario(cleared_flake)
    verdict = verdict_of(flake)
    assert verdict["decision"] == "PASS", verdict["reasons"]
    (confirmation,) = verdict["confirmations"]
    assert confirmation["finding"] == "no large fall shown"
    assert (confirmation["baseline_passed"], confirmation["baseline_n"]) == (3, 3)
    assert confirmation["passed"] == confirmation["n"] - 1 == 2 + confirmation["confirming"]
    (task,) = verdict["measurement"]["tasks"]
    assert (task["passed"], task["failed"], task["value"] if "value" in task else task["pass_hat_k"]) == (2, 1, 0.0)
    assert task["confirming"] == [True] * confirmation["confirming"]
    rows = pd.read_parquet(flake.path / ".passgate/history/trials")
    newest = rows[rows["run_id"] == verdict["run_id"]]
    assert sorted(newest["trial"]) == list(range(3 + confirmation["confirming"]))
    assert newest[newest["confirming"]]["trial"].min() == 3


def test_a_run_that_was_killed_in_its_confirming_trials_goes_on_with_them(scenario: Scenarios, tmp_path: Path) -> None:
    flake = scenario(cleared_flake).copy(tmp_path / "repository")
    whole = verdict_of(flake)
    journal = newest_run(flake) / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:5]))
    again = flake.passgate("run", "ci_merge", "--resume", "last")
    assert again.returncode == 0, again.stdout + again.stderr
    assert verdict_of(flake)["confirmations"] == whole["confirmations"]


def test_a_fall_is_confirmed_and_blocks(repository: Project) -> None:
    says(repository, a="pff" + "f" * 60)
    verdict = verdict_of_run(repository)
    assert verdict["decision"] == "FAIL"
    (reason,) = [reason for reason in verdict["reasons"] if reason["blocking"]]
    assert reason["rule"] == "golden_regression"
    assert verdict["confirmations"][0]["finding"] in {"fallen", "undecided"}


def test_who_runs_a_red_commit_again_until_it_is_green_is_told(repository: Project) -> None:
    says(repository, a="pff" + "f" * 60)
    assert verdict_of_run(repository)["notes"][0] == "run 2 of this commit; no task failed before"
    says(repository)
    verdict = verdict_of_run(repository)
    assert verdict["decision"] == "PASS"
    assert [one["failed"] for one in verdict["repeats"]] == [[], ["golden/a"]]
    assert verdict["notes"][0] == "run 3 of this commit; red before, in 1 of 2 earlier runs: golden/a"


def test_a_red_commit_stays_red_where_its_runs_count_together(repository: Project) -> None:
    repository.write("gates.yaml", GATES + "    reruns: together\n")
    repository.git("commit", "-q", "-am", "Count all runs of a commit")
    says(repository, a="fff" + "f" * 60)
    red = verdict_of_run(repository)
    says(repository)
    result = repository.passgate("run", "ci_merge", "--agent", AGENT)
    verdict = verdict_of(repository)
    assert (red["decision"], verdict["decision"], result.returncode) == ("FAIL", "FAIL", 1)
    assert "2 runs of this commit count together: 6 trials a task" in result.stdout
    (task,) = verdict["measurement"]["tasks"]
    assert (task["passed"], task["failed"], task["failed_trials"]) == (3, 3, [])
    # Its own confirming trials come after those of the red run.
    earlier = red["measurement"]["tasks"][0]["confirming"]
    assert task["confirming"][: len(earlier)] == earlier
    assert all(task["confirming"][len(earlier) :])
    repository.git("commit", "-q", "--allow-empty", "-m", "Repair the agent")
    assert verdict_of_run(repository)["decision"] == "PASS"


def test_a_new_task_is_reported_without_blocking(repository: Project) -> None:
    repository.write("suites/golden/b.yaml", TASK.format(name="b"))
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "A new task")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "change")
    says(repository, b="f")
    verdict = verdict_of_run(repository)
    assert verdict["decision"] == "PASS", verdict["reasons"]
    assert [withheld["task"] for withheld in verdict["not_admitted"]] == ["golden/b"]
    assert [reason["blocking"] for reason in verdict["reasons"] if reason["task_id"] == "b"] == [False]
